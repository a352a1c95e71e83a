"""Containers, clusters, clouds, hosts, and other services."""

TABLE = """
docker,podman,nerdctl: -H=! -c=! -D -l= --host=! --context=! --debug --log-level= --version -v --help
@docker-ps: *
docker,podman,nerdctl ps,images,logs,inspect,stats,top,port,version,info,pull,push,tag,rmi,rm: @docker-ps
docker,podman,nerdctl start,stop,restart: @docker-ps
@docker-kill: *
docker,podman,nerdctl kill,pause,unpause,rename,cp,diff,export,import,save,load,history,events: @docker-kill
docker,podman,nerdctl wait,login,logout: @docker-kill
docker,podman,nerdctl search,commit,update,attach: *
docker,podman,nerdctl build: *
docker buildx build,bake,create,use,ls,inspect,rm,prune,version,imagetools,du,stop: *
@docker-network: *
docker,podman network,volume,image,system,context,manifest,secret,config,node,service,stack: @docker-network
docker,podman swarm,builder: @docker-network
@docker-ls: *
docker,podman container ls,list,ps,prune,rm,stop,start,restart,logs,inspect,kill,stats,top,port: @docker-ls
docker,podman container cp,rename: @docker-ls
@run: * -v= -e= -p= -w= -u= -h= -l= -m= -a= -c= --name= --volume= --env= --publish= --workdir= --user= --network=
  --net= --entrypoint= --mount= --env-file= --gpus= --memory= --cpus= --platform= --restart= --add-host= --label=
  --shm-size= --hostname= --link= --ipc= --cap-add= --security-opt= --device= --ulimit= --dns= --log-driver=
  --runtime= --pull= --cidfile= --detach-keys= --tmpfs= :stops :passes :fed
docker,podman,nerdctl run,exec,create: @run
docker,podman container run,exec,create: @run
@compose: -f=! -p= --file=! --project-name= --profile= --env-file=! --project-directory=! --progress= --ansi=
  --compatibility :inherits
docker,podman compose: @compose
docker-compose,podman-compose: @compose --version -v
@compose-command: * -d -t= --scale= --timeout= :runs
@docker-up: @compose-command
docker,podman compose up,down,build,ps,logs,start,stop,restart,pull,push,config,kill,rm,images: @docker-up
docker,podman compose top,port,create,version: @docker-up
docker,podman compose pause,unpause,watch,ls,cp,events,convert,wait: @compose-command
@docker-compose-up: @compose-command
docker-compose,podman-compose up,down,build,ps,logs,start,stop,restart,pull,push,config,kill,rm: @docker-compose-up
docker-compose,podman-compose images,top,port: @docker-compose-up
docker-compose,podman-compose create,version,pause,unpause,watch,ls,cp,events,convert: @compose-command
docker,podman compose run,exec: @run -T --rm :runs
docker-compose,podman-compose run,exec: @run -T --rm :runs
kubectl,oc,k: -n= --namespace= --context=! --kubeconfig=! --cluster= --user= -s= --server= --v= -v= --request-timeout=
  --as= :inherits
@kubectl-get: *
kubectl,oc,k get,describe,logs,apply,delete,create,replace,patch,scale,autoscale,rollout,set: @kubectl-get
kubectl,oc,k label,annotate,expose,top: @kubectl-get
@kubectl-cluster-info: *
kubectl,oc,k cluster-info,version,api-resources,api-versions,explain,wait,drain,cordon,uncordon: @kubectl-cluster-info
kubectl,oc,k taint,port-forward: @kubectl-cluster-info
@kubectl-proxy: *
kubectl,oc,k proxy,auth,cp,certificate,events,completion,edit,diff,login,project,projects,status: @kubectl-proxy
kubectl,oc,k new-project,new-app: @kubectl-proxy
@kubectl-view: *
kubectl,oc,k config view,get-contexts,current-context,use-context,set-context,get-clusters: @kubectl-view
kubectl,oc,k config get-users,delete-context: @kubectl-view
kubectl,oc,k exec,run,attach,debug: -i -t -c= -it -ti --stdin --tty --rm --image= --restart= --container= --env=
  --port= -l= --labels= --command --dry-run= -o= --image-pull-policy= --target= --overrides= -q --quiet --attach
  --expose --requests= --limits= :stops :passes :fed
kubectl,k kustomize: :runs
kustomize build,edit,create,version: --load-restrictor= -o=>
k9s,kubectx,kubens,stern: -n= --namespace= --context= --since= --tail= -c= -l= -A
@minikube-start: --driver= --cpus= --memory= --name= --config=! --image= --nodes= --kubernetes-version= -p= --profile=
  --url --disk-size= --wait= --agents= --servers= --port= --no-lb --addons= -c= --all --cni= -n=
minikube,kind,k3d,microk8s start,stop,delete,status,dashboard,ip,tunnel,service,addons,image: @minikube-start
minikube,kind,k3d,microk8s create,load,get,export,cluster: @minikube-start
helm: -n= --namespace= --kube-context= --debug :inherits
@helm-install: -f= -i -g -a -A -d= -q -o= --values= --set= --set-string= --set-file= --install --create-namespace
  --wait --timeout= --atomic --version= --dry-run? --repo= --generate-name --reuse-values --reset-values --force
  --cleanup-on-fail --history-max= --include-crds --show-only= -s= --devel --untar --untardir= --destination=
  --app-version= --dependency-update --output= --all-namespaces --description= --no-hooks --strict --skip-crds
  --keep-history --wait-for-jobs --api-versions= --output-dir= --name-template= --username= --password= --max= -l=
  --all --pass-credentials --plain-http
helm install,upgrade,uninstall,delete,template,lint,list,ls,status,history,rollback,dependency: @helm-install
helm dep,pull,fetch,package,push: @helm-install
helm repo,show,search,get,test,create,version,env,registry,inspect: -f= -o= -q --output= --version= --versions
  --force-update --username= -u= -p= --password= --password-stdin --revision= --all --devel -l --logs --timeout=
  --short --regexp
@helmfile-version: *
helmfile,skaffold,argocd,flux,istioctl,linkerd,velero,eksctl,kops,kubeadm,vault,consul,nomad: @helmfile-version
helmfile,skaffold,argocd,flux,istioctl,linkerd,velero,eksctl,kops,kubeadm,vault,consul,nomad version:
  @helmfile-version
helmfile,skaffold,argocd,flux,istioctl,linkerd,velero,eksctl,kops,kubeadm,vault,consul,nomad status: @helmfile-version
terraform,tofu: -chdir=! -version -help :single
@tf: -var= -var-file= -auto-approve -target= -input= -refresh= -refresh-only -lock= -lock-timeout= -parallelism=
  -no-color -destroy -compact-warnings -json -replace= -out= -state= -state-out= -backup= -detailed-exitcode
  -generate-config-out= :single :runs=tf|tfvars|hcl|json|terraformrc
terraform,tofu plan,apply,destroy,refresh,import,validate,show,output,graph,test: @tf -raw -type= -allow-missing
  -filter= -verbose
terraform,tofu init: @tf -backend-config= -upgrade -reconfigure -backend= -migrate-state -force-copy -get= -lockfile=
  -json
terraform,tofu fmt: -check -recursive -diff -write= -list= -no-color :single
terraform,tofu state list,show,rm,mv,pull,replace-provider: -lock= -id= -dry-run -auto-approve :single
terraform,tofu workspace list,new,select,show,delete: -force -or-create -lock= :single
terraform,tofu get,taint,untaint,version,providers,modules,force-unlock,metadata: -update -json -no-color -force
  -lock= -allow-missing :single
@terragrunt-validate: -f -y --yes -auto-approve --force -upgrade -diff -recursive -check -var= -var-file= -s= --stack=
  -no-color :runs
terragrunt,pulumi,packer,vagrant,tflocal validate,fmt,init,version,status,halt,suspend,resume: @terragrunt-validate
terragrunt,pulumi,packer,vagrant,tflocal reload,destroy,box,preview,stack,login,logout,config: @terragrunt-validate
terragrunt,pulumi,packer,vagrant,tflocal whoami,refresh: @terragrunt-validate
vagrant up,provision,ssh,global-status: --provider= --provision --no-provision --parallel :runs
packer build: -var= -var-file= -only= -force -except= -on-error= -color= :single :runs
pulumi up,new: -y --yes -s= --stack= -f --skip-preview --name= :runs
ansible-playbook: -i=! -l= -t= -e=<ansible> -v -vv -vvv -vvvv -C -D -K -k -b -u= -f= --inventory=! --limit= --tags=
  --skip-tags= --extra-vars=<ansible> --check --diff --become --user= --syntax-check --list-tasks --list-hosts
  --list-tags --ask-become-pass --ask-vault-pass --ask-pass --private-key= --start-at-task= --step --forks=
  --flush-cache :runs
ansible-galaxy install,collection,role,list,init: -r= -p=! -f -v --force -c --role-file= --requirements-file= -n
  --roles-path=!
ansible-vault encrypt,decrypt,view,create,edit,rekey,encrypt_string: --ask-vault-pass --name=
molecule test,converge,verify,create,destroy,lint,list,login,syntax,idempotence: -s= --scenario-name= --all :runs

aws: --region= --profile= --output= --no-cli-pager --query= --endpoint-url= --no-verify-ssl --no-paginate
  --no-sign-request --debug --version :inherits
@aws-acm: *
aws acm,apigateway,apigatewayv2,athena,autoscaling,backup,batch,budgets,cloudformation: @aws-acm
aws cloudfront,cloudtrail,cloudwatch,codebuild: @aws-acm
@aws-codecommit: *
aws codecommit,codedeploy,codepipeline,cognito-idp,ce,deploy,dynamodb,ec2,ecr,ecr-public,ecs,efs: @aws-codecommit
aws eks,elasticache,elasticbeanstalk: @aws-codecommit
@aws-elbv2: *
aws elbv2,elb,es,events,firehose,glue,iam,iot,kinesis,kms,lambda,logs,organizations,rds,redshift: @aws-elbv2
aws route53,s3,s3api: @aws-elbv2
@aws-sagemaker: *
aws sagemaker,secretsmanager,ses,sns,sqs,ssm,sso,stepfunctions,sts,wafv2,bedrock,bedrock-runtime: @aws-sagemaker
aws help: @aws-sagemaker
aws configure: :alone
aws configure list,get,list-profiles,sso: --profile=
sam build,deploy,validate,local,init,package,logs,sync,delete,list: * :runs
gcloud: --project= --region= --zone= --quiet -q --format= --account= --configuration= --version :inherits
@gcloud-auth: *
gcloud auth,app,projects,container,builds,functions,run,services,iam,storage,artifacts,sql: @gcloud-auth
gcloud secrets,pubsub,logging,info,init: @gcloud-auth
@gcloud-components: *
gcloud components,version,redis,scheduler,tasks,firestore,dns,organizations,billing,ai,dataproc: @gcloud-components
gcloud dataflow,deploy,kms: @gcloud-components
gcloud config set: :settings=gcloud
gcloud compute instances,networks,firewall-rules,disks,images,addresses,regions,zones: *
gcloud config list,get-value,get,configurations: *
gsutil cp,ls,mb,mv,rsync,rm,cat,du,stat,rb,acl,iam: *
gsutil: -m -q
bq ls,show,query,mk,load,extract,head,rm,cp,version: *
@az-login: *
az login,logout,account,group,aks,acr,webapp,functionapp,storage,keyvault,ad,network,appservice: @az-login
az deployment,resource,version,monitor,cosmosdb,sql,role,provider,bicep,containerapp,upgrade: @az-login
@heroku-login: -a= --app= -t --tail -r= --remote= -n= --num= -s --shell --region= --team=
heroku login,create,logs,config,config:set,config:get,ps,apps,addons,addons:create,git:remote: @heroku-login
heroku open,info,restart,ps:scale,domains,releases,rollback,pg:info,container:login: @heroku-login
heroku container:push,container:release,buildpacks:set,buildpacks:add,maintenance:on: @heroku-login
heroku maintenance:off: @heroku-login
@firebase-deploy: --only= -P= --project= --token= --import=! --export-on-exit? --except= --force -m= --message=
  --non-interactive --debug :runs
firebase deploy,serve,login,logout,init,use,emulators:start,projects:list,functions:log: @firebase-deploy
firebase hosting:channel:deploy,apps:list,functions:config:get: @firebase-deploy
railway login,up,link,init,status,logs,list,domain,add,unlink,logout: -d --detach -s= --service= -e= --environment=
supervisorctl start,stop,restart,status,reload,update,tail: -c=!
ssh: :nodash -p= -i= -l= -v -q -4 -6 -A -a -T -t -N -f -n -C -g -x -X -Y -K -k -L= -R= -D= -J=<host> -b= -c= -m=
  -o=<ssh> -V :passes :stops :fed
ssh-add: -l -L -D -d -t= -K
gh: -R= --repo= --version --help :inherits
gh pr list,view,create,checkout,merge,close,comment,diff,edit,ready,reopen,review,status,checks: *
gh issue list,view,create,close,comment,edit,reopen,status,delete,develop,lock,pin,transfer: *
gh repo create: --public --private --internal --source=! --clone --description= -d= --template= --remote= -r= --team=
  --homepage=
gh repo list,view,clone,fork,delete,edit,rename,sync,set-default,archive,deploy-key: * :nodash
gh release list,view,create,delete,download,edit,upload: *
gh run list,view,watch,rerun,cancel,download,delete: *
gh workflow list,view,run,enable,disable: *
gh auth login,logout,status,token,refresh,switch: *
@gh-api: *
gh api,search,browse,label,gist,secret,variable,status,cache,org,project,ruleset,attestation: @gh-api
gh gpg-key,ssh-key,completion: @gh-api
gh config get,list: -h=
glab mr,issue,repo,ci,release,auth,pipeline,label,variable,snippet: *
service: --status-all :names
stripe login,listen,trigger,logs,products,customers: --forward-to= --events= -f= --api-key= --live
ngrok http,tcp,config,start,version: --domain= --region= --all --log= --url=
mongosh: --host= --port= -u= -p= --authenticationDatabase= --version --quiet :fed :runs
usermod,groupadd,gpasswd: *
htop,btop,ncdu,iotop,glances: -u= -d= -p= -t -x
nix develop,build,flake,fmt,search: -L --impure --show-trace --print-build-logs -o= :fed :runs
systemctl: --user --no-pager -q --quiet --now --system -l -a :inherits
@systemctl-start: -t= --type= --state= --all -n= -o= -p= --failed --lines= -f --force
systemctl start,stop,restart,reload,enable,disable,status,daemon-reload,is-active,is-enabled: @systemctl-start
systemctl is-failed,list-units,list-unit-files,list-timers,mask,unmask,show,cat,try-restart: @systemctl-start
systemctl reset-failed,reload-or-restart: @systemctl-start
journalctl: -u= -f -n= -e -x -r -k -b? -o= -S= -U= -t= -p= -q --unit= --follow --lines= --since= --until= --no-pager
  --output= --user -a --vacuum-time= --vacuum-size= --disk-usage --boot? --user-unit= --grep= -g=
nginx: -t -s= -v -V -T -q
apachectl,apache2ctl,httpd: -t -S -M -v -V -k=
certbot: --nginx --apache -d= --standalone --webroot -w= --email= -m= --agree-tos --non-interactive -n --dry-run -q
  --expand --redirect --force-renewal -v
ufw,firewall-cmd,iptables: -L -n -v --list-all --permanent --reload --add-port= --add-service= --state --line-numbers
hostnamectl,timedatectl,localectl,loginctl: --no-pager
dmesg,lsmod,modinfo,fdisk,findmnt,blkid: -T -H -w -l -a -h -t= -o= --follow --human --ctime -L= -U= -f -R
@docker-machine-start: --cpu= --memory= --disk= --driver= --cpus= -c= -m= -d= -n= --name= --arch= --vm-type= -p=
  --profile= --kubernetes
docker-machine,colima,lima,orb,multipass start,stop,ls,status,env,create,rm,list,version,info: @docker-machine-start
docker-machine,colima,lima,orb,multipass delete,restart: @docker-machine-start
psql: -f=! --file=! -U= -h= -p= -d= -W -w -l -t -A -q -c=<sql> --username= --host= --port= --dbname= --command=<sql>
  --version -V :fed :runs
mysql,mariadb: -u= -h= -P= -p? -e=<sql> --user= --host= --port= --password? --execute=<sql> --version -V -N -B :fed
redis-cli: -h= -p= -a= -n= -u= --no-auth-warning --raw --stat --scan --pattern= --tls -r= -i= --bigkeys
sentry-cli,codecov,coveralls,snyk,sonar-scanner,fossa: -t= -f= -F= -D=<cmake> --all-projects --severity-threshold=
  --org= --project= --flags= --file= --token=
goreleaser: --snapshot --clean --rm-dist --skip= --skip-publish --timeout= -f=! --config=! --single-target -p=
  --parallelism= --auto-snapshot :runs
@ko-ko: -path= -database= -dir= -d= -g= -n= -c=! -o=> -t= -s= --target= --opt= --seq -ext= --ext= --env= -target= -v
  --verbose -verbose -url= --url= -size= --platform= -u= -j= -l -P= -W= --job= :passes :runs
ko,tinygo,wails,templ,air,sqlc,swag,atlas,migrate,goose,dbmate,flyway,liquibase,mockery,wire: @ko-ko
ent,cobra-cli,act,earthly: @ko-ko
"""

VALUES = {
    "gcloud": r"(?:set )?(?:project|account|compute/region|compute/zone|run/region|core/project)(?: [\w.@-]*)?",
    "sql": r"(?i:(?!.*\bprogram\b)(?:select|show|drop|grant|create (?:database|user|role|schema|table))\b"
    r"[\w .,*='()<>%-]*;?)",
    "ansible": r"[a-z](?!nsible_)[\w.]*=[\w./:@-]*|@[\w./-]+",
    "host": r"[\w.@:,-]+",
    "ssh": r"(?:StrictHostKeyChecking|UserKnownHostsFile|ConnectTimeout|BatchMode|ServerAlive\w+|LogLevel|User|Port|"
    r"HostName|IdentitiesOnly|PasswordAuthentication|PubkeyAuthentication|AddressFamily|Compression|TCPKeepAlive|"
    r"PreferredAuthentications|HostKeyAlgorithms|ForwardAgent|ExitOnForwardFailure)[= ][\w./~,+-]*",
}
"""Harmless values of options whose other values may do harm."""
