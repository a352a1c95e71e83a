"""Package managers, and the programs that they install.

They are those of systems, of Python, of JavaScript, and of other languages.
"""

TABLE = """
@apt-get-update: -y -q -qq -f -m -d -s -u --yes --assume-yes --quiet --no-install-recommends --install-recommends
  --fix-missing --fix-broken --reinstall --purge --allow-unauthenticated --no-upgrade --only-upgrade
  --allow-downgrades --dry-run --simulate --download-only --force-yes -t= --target-release= --autoremove --auto-remove
apt-get,apt update,upgrade,dist-upgrade,full-upgrade,install,remove,purge,autoremove,clean: @apt-get-update
apt-get,apt autoclean,build-dep,download: @apt-get-update
apt-get,apt list,search,show,policy: --installed --upgradable -a
apt-cache search,policy,show,madison,depends: *
dpkg: -i -l -L -s -S -r -P --list --install --listfiles --status --print-architecture --configure -a --purge --remove
add-apt-repository: -y --yes --remove
@yum-install: -y -q -v --assumeyes --quiet --nodocs --refresh --best --allowerasing --skip-broken --nobest
yum,dnf,microdnf,tdnf install,update,upgrade,remove,erase,list,info,search,clean,makecache: @yum-install
yum,dnf,microdnf,tdnf groupinstall,check-update,autoremove: @yum-install
yum,dnf,microdnf,tdnf: -y -q --assumeyes
rpm: -q -i -U -v -h -a -l -e -f --import -p
apk add,del,update,upgrade,search,info,fix: --no-cache -U -u -q -t= --virtual= --update --update-cache --available -v
apk: --no-cache --update -U
pacman: -S -y -u -c -q -s -i -l -R -n -Q -U -e -t -k --noconfirm --needed --sync --refresh --sysupgrade
zypper install,in,update,up,remove,rm,refresh,ref,search,se: -y -n --non-interactive --no-confirm --no-recommends
zypper: -n --non-interactive
@brew-install: --cask --formula --quiet -q --force -f -v --verbose --overwrite --HEAD --no-quarantine --prefix
  --versions
brew install,uninstall,update,upgrade,list,info,search,tap,untap,cleanup,doctor,link,unlink: @brew-install
brew outdated,deps,reinstall,remove: @brew-install
brew services: -v --verbose
brew: --version --prefix?
snap install,remove,list,refresh,find,info: --classic --edge --beta --channel= --devmode --dangerous --candidate
port,choco,scoop,winget install,uninstall,upgrade,list,search,update: -y --yes --version= -e --id --id=
flatpak install,update,list,remove: -y --user --assumeyes

# Python
pip,pip3 install,download,wheel: -r= -c= -e= -U -q -v -t=! -d= -w= -f=! -i=! --requirement= --constraint= --editable=
  --upgrade --user --quiet --verbose --no-cache-dir --no-deps --no-build-isolation --force-reinstall
  --ignore-installed -I --pre --prefer-binary --only-binary= --no-binary= --upgrade-strategy= --break-system-packages
  --disable-pip-version-check --root-user-action= --no-warn-script-location --progress-bar= --dry-run --report=
  --require-hashes --use-pep517 --no-input --retries= --timeout= --target=! --prefix=! --root=! --find-links=!
  --no-index --index-url=! --extra-index-url=! --trusted-host=! --src=! --compile --no-compile
  --ignore-requires-python --proxy=! --cert=! --platform= --python-version= --implementation= --abi= --dest=
  --wheel-dir= --no-clean --default-timeout= --no-color --group=
pip,pip3 uninstall: -y -r= --yes --requirement= -q --break-system-packages
pip,pip3 list,freeze,show,check,index,search,inspect,debug,cache,hash,help: -o --outdated --format= -f --files -l
  --local --user -e --editable --all --exclude= -v --verbose --not-required --uptodate --path= --no-index
  --exclude-editable -q
pip,pip3 config list,get,debug: --user --global --site
pip,pip3: -V --version -q -v -h --help --disable-pip-version-check --no-input --no-color
pip-compile,pip-sync: -o=> --output-file=> -U --upgrade -q -v --quiet --verbose --generate-hashes --resolver= --extra=
  --all-extras -P= --upgrade-package= --no-header --strip-extras --allow-unsafe --dry-run --annotation-style=
  --no-emit-index-url
uv pip install,sync,uninstall,compile,list,freeze,show,tree,check: -r= -c= -e= -U -q -v -o=> --requirement=
  --constraint= --editable= --upgrade --quiet --verbose --system --no-deps --no-cache --reinstall --pre --prerelease=
  --resolution= --index-url=! --extra-index-url=! --find-links=! --index=! --torch-backend= --extra= --all-extras
  --break-system-packages --target=! --upgrade-package= -P= --no-build-isolation --generate-hashes --output-file=>
  --strict --outdated --dry-run
uv sync,add,remove,lock,export,tree,init,build,version,venv: -q -v -U -p= -r= -o=> --quiet --verbose --upgrade --dev
  --no-dev --group= --only-group= --all-groups --no-group= --extra= --all-extras --frozen --locked
  --no-install-project --active --inexact --exact --no-cache --python= --all-packages --package= --editable
  --optional= --upgrade-package= --seed --bump= --format= --no-hashes --output-file=> --requirements= --no-editable
  --no-sync --raw --branch= --tag= --rev= --wheel --sdist --out-dir= --lib --app --name= --check --prerelease= --clear
  --allow-existing --system-site-packages --no-emit-project --no-default-groups --prompt= --link-mode=
  --compile-bytecode --depth= --refresh --no-workspace --bare --short
uv python install,list,find,pin,uninstall,dir: --quiet -q --all-versions --only-installed --default --reinstall
uv tool install,list,uninstall,upgrade,update-shell,dir: --python= -p= --with= --force -f --upgrade --all --quiet -q
  -e --editable --from=
uv cache clean,prune,dir: -q
uv self update,version: -q
uv publish: --token= -t= --username= --password= --index= --dry-run --check-url=
uv: -q -v --quiet --verbose --version -V --help -h --no-progress --directory= --project= --offline
pipx install,uninstall,upgrade,list,inject,ensurepath,upgrade-all,reinstall: -f --force --python= --include-deps
  --verbose -e
@poetry-install: -q -v -n -D -E= -G= -f= -o=> -r= --quiet --verbose --no-interaction --no-root --with= --without=
  --only= --sync --extras= --all-extras --dev --group= --no-dev --only-root --all-groups --no-cache --dry-run
  --optional --editable -e --format= --tree --latest --outdated -u= -p= --username= --password= --repository=
  --without-hashes --no-update --output=> --name= --lock --source= --short -s --regenerate --no-directory --compile
  --allow-prereleases --build -l
poetry install,add,remove,update,lock,build,publish,show,check,export,new,init,version,sync: @poetry-install
poetry about,search: @poetry-install
poetry env use,list,info,remove: --path -p --all
poetry cache clear,list: --all
poetry self update,add,show: -q
poetry: --version -V -q -v -n --no-interaction -C= --directory=
pipenv install,uninstall,update,lock,sync,clean,check,graph,verify: -d -r= -e= --dev --deploy --system
  --ignore-pipfile --skip-lock --pre --python= --three
pdm install,add,remove,update,lock,build,publish,sync,list,init,info,use: -d -G= -v -q -g --dev --group= --prod
  --no-self --no-lock --frozen-lockfile --no-editable
hatch build,clean,version,publish,fmt,test,new,status,dep: -t= --target= --clean -c --all -a --cover --check -f
  --force -n -v
hatch env create,show,prune,remove: -v
rye sync,add,remove,lock,init,build,fmt,lint,test,show,pin,publish,fetch,self: -q -v --dev --no-lock --all --features=
  -f
flit build,publish,install,init: --format= --symlink -s --deps= --no-setup-py --use-vcs --no-use-vcs
twine upload,check: -r= -u= -p= --repository= --repository-url= --skip-existing --username= --password= --verbose
  --non-interactive --strict
@conda-create: -n= -c= -y -q -p= -f= -a --name= --channel= --yes --quiet --prefix= --file= --all --force --clone=
  --no-deps --override-channels --json --from-history --no-builds --envs --solver= --dry-run --update-deps --tarballs
  --no-update-deps --strict-channel-priority --offline
conda,mamba,micromamba create,install,update,remove,uninstall,list,search,info,clean,activate: @conda-create
conda,mamba,micromamba deactivate,export,upgrade: @conda-create
conda,mamba,micromamba env create,update,remove,list,export: -n= -f= -p= -y -q --name= --file= --prune --from-history
  --no-builds --force --prefix= --quiet
conda,mamba config: --add --set --append --prepend --show? --get :settings=conda
conda,mamba init: --all
conda: --version -V --help
virtualenv,venv,pyvenv: -p= --python= --system-site-packages --clear --upgrade-deps --without-pip --prompt= --upgrade
  --symlinks --copies -q
pyenv install,local,global,versions,version,uninstall,shell,which,rehash,virtualenv,activate: -s -l -f -v --list
  --skip-existing --force --unset --bare
ensurepip: --upgrade --user --default-pip
json.tool: --indent= --no-indent --tab --compact --sort-keys --no-ensure-ascii --json-lines :out=1
http.server: -b= -d= --bind= --directory= --cgi
@zipfile-zipfile: -c= -e= -l= -t= -q -f -r= -j= --user-site --user-base -v :makes=0
zipfile,tarfile,compileall,tabnanny,py_compile,site,platform,sysconfig,calendar,this,uuid,dis: @zipfile-zipfile
tokenize: @zipfile-zipfile
build: -w -s -o= -n -x -C= --wheel --sdist --outdir= --no-isolation --skip-dependency-check --installer=
@pre-commit-run: -a -v -f -t= --all-files --files --show-diff-on-failure --hook-type= --install-hooks --verbose
  --color= --from-ref= --to-ref= --hook-stage= --overwrite --freeze --last-commit :runs=yaml
pre-commit run,install,uninstall,autoupdate,clean,gc,validate-config,install-hooks,sample-config: @pre-commit-run
pre-commit migrate-config: @pre-commit-run
ipykernel install: --user --name= --display-name= --sys-prefix
kill-port,@yarnpkg+sdks,npm-run-path,license-checker-rseidelsohn,is-ci: -y --yes
nltk.downloader,spacy download: -d= -q
cookiecutter,copier copy: --no-input -f -o=

# JavaScript
npm: -g -s -d -q -w= -C= --global --silent --quiet --prefix= --loglevel= --workspace= --workspaces -ws --verbose
  --no-progress --no-color --color= --offline --prefer-offline --no-audit --no-fund --ignore-scripts
  --include-workspace-root --omit= --include= --production --only= --legacy-peer-deps --force -f --foreground-scripts
  --json --parseable -p -l --long --version -v --if-present --registry=! --cache=! --userconfig=! --fund --audit
  --no-optional --cache-min= :inherits
@npm-install: -D -S -O -E -P -B --save --save-dev --save-exact --save-optional --save-prod --save-peer --save-bundle
  --no-save --package-lock-only --no-package-lock --package-lock= --install-strategy= --strict-peer-deps --dry-run
  --no-bin-links --install-links --engine-strict --depth= --only-dev --frozen-lockfile
npm install,i,in,add,ci,clean-install,install-ci-test,install-test,it,cit,update,up,upgrade: @npm-install
npm uninstall,remove,rm,un,unlink,r: @npm-install
npm test,t,tst,start,stop,restart,run,run-script,rum: :passes :runs
@npm-ls: -a --all --depth= --audit-level= --production --dry-run
npm ls,list,la,ll,outdated,audit,view,info,show,v,search,fund,doctor,ping,whoami,root,bin: @npm-ls
npm explain,why,query,dedupe,ddp,prune,rebuild,link,ln,shrinkwrap,sbom,help: @npm-ls
npm pack: --dry-run --pack-destination= --json
npm publish: --access= --tag= --dry-run --otp= --provenance
npm version: -m= --no-git-tag-version --allow-same-version --preid= --message= --sign-git-tag
npm login,logout,adduser,token,dist-tag,deprecate,undeprecate,owner,access,team,org,star,stars: --scope= --auth-type=
  --otp=
npm cache clean,ls,verify,add: -f
npm config get,list,ls,delete: -l
npm config,c set: :settings=npm
npm set,get: :settings=npm
npm pkg get: -q
npm init,create,innit: -y --yes --template= -t= --scope= :passes
yarn: -s --silent --cwd= --frozen-lockfile --immutable --production --prod --ignore-scripts --network-timeout=
  --no-lockfile --version -v --non-interactive --force --check-files --offline --prefer-offline --verbose
  --ignore-engines --pure-lockfile --json --inline-builds --ignore-optional --no-progress :inherits :alone :scripts
  :runs
@yarn-install: -D -E -P -O -W -T -L -y -A -R --dev --exact --peer --optional --latest --mode= --immutable-cache
  --refresh-lockfile --pattern= --depth= --new-version= --major --minor --patch --no-git-tag-version -i --interactive
  --level= --groups= --all --recursive --cached
yarn install,add,remove,upgrade,up,upgrade-interactive,outdated,list,info,why,audit,check,cache: @yarn-install
yarn link,unlink,init,dedupe,global,autoclean,import,version,versions,pack,licenses,bin: @yarn-install
yarn workspaces list,info: --json -v
yarn npm login,logout,whoami,audit,info: --all --recursive
yarn publish: --access= --tag= --new-version=
yarn run: :passes :runs
yarn set version: -q
yarn create: :passes
pnpm: -s -r -C= -F= -w --silent --dir= --filter= --recursive --workspace-root --frozen-lockfile --no-frozen-lockfile
  --prod -P --dev --ignore-scripts --offline --prefer-offline --reporter= --parallel --stream --if-present --no-bail
  --version -v --loglevel= --shamefully-hoist --workspace-concurrency= --aggregate-output --color --no-color
  --strict-peer-dependencies --fix-lockfile --sort --no-sort --force :inherits :scripts :runs
@pnpm-install: -D -E -O -L -g --save-dev --save-exact --save-optional --save-peer --save-prod --global --latest
  --lockfile-only --depth= --workspace --interactive -i --allow-build= --json --long
pnpm install,i,add,remove,rm,un,update,up,ls,list,outdated,why,audit,store,prune,link,unlink: @pnpm-install
pnpm import,rebuild,dedupe,fetch,licenses,init,pack,config-get,root,bin: @pnpm-install
pnpm publish: --access= --tag= --no-git-checks --dry-run
pnpm test,t,start,run,run-script: :passes :runs
pnpm deploy: --legacy
pnpm create: :passes
bun install,i,add,a,remove,rm,update,outdated,link,unlink,pm,init,build: -d -D -E -y -g -p --dev --exact --production
  --frozen-lockfile --global --no-save --outdir= --outfile=> --target= --minify --sourcemap? --external= --splitting
  --format= --watch --compile
bun run,test,dev,start,create: --watch --hot --bail? --coverage -t= --timeout= --silent -b --bun -i :passes :runs
@deno-run: -A -R -W -N -E -q -c= -f -n= -o=> --allow-all --allow-net? --allow-read? --allow-write? --allow-env?
  --allow-run? --allow-sys? --allow-ffi? --unstable --watch? --config= --import-map= --lock= --no-lock --reload?
  --check --no-check? --quiet --coverage? --filter= --parallel --output=> --no-prompt --frozen? --cached-only
  --node-modules-dir? --unstable-kv -g :passes :runs
deno run,test,fmt,lint,check,cache,task,install,compile,bench,doc,add,info,bundle,serve,upgrade: @deno-run
deno jupyter,remove,outdated: @deno-run
corepack enable,disable,prepare,use,install: --activate
nvm install,use,ls,list,current,alias,ls-remote,which,version,uninstall,deactivate: --lts? --default --no-colors
  --latest-npm
fnm,volta,n install,use,list,default,env,pin,current: --lts --use-on-cd
lerna bootstrap,run,version,list,changed,clean,diff,publish: --stream --parallel --scope= --since? --yes -y
  --no-private --concurrency= --ignore= :runs
@nx-build: --all --parallel? --skip-nx-cache --configuration= --prod --project= --projects= --target= --targets= -t=
  -p= --base= --head= --verbose --watch :passes :runs
nx build,test,lint,serve,e2e,run,run-many,affected,affected:test,affected:build,affected:lint: @nx-build
nx graph,format,migrate,reset,show,generate,g,report,list: @nx-build
turbo run,build,lint,test,dev,prune,login,link: --filter= --no-cache --force --parallel --concurrency= --cache-dir=
  --since= --continue --dry? --no-daemon --output-logs= -F= :passes :runs

# other languages
gem install,uninstall,update,list,build,push,search,info,which,environment,cleanup,fetch,outdated: -v= -N -q -f -a -x
  -I --version= --no-document --user-install --no-doc --no-ri --no-rdoc --local --pre --force --system --all
  --executables --conservative --bindir= --silent
bundle,bundler: -j= -v --jobs= --version --path= --without= --deployment --quiet --retry= --full-index --binstubs?
  --with= --local --frozen --verbose :alone
@bundle-install: -j= -q --jobs= --path= --without= --with= --deployment --quiet --retry= --local --frozen --all
  --conservative --patch --minor --major --group= --version= --git= --skip-install --add-platform= --force --strict
  --dry-run --binstubs? --full-index --gemfile=! --redownload
bundle,bundler install,update,check,add,remove,show,list,outdated,lock,clean,package,cache,info: @bundle-install
bundle,bundler init,binstubs,pristine,doctor: @bundle-install
bundle,bundler config set,get,list,unset: --local --global :settings=bundle
bundle,bundler config: --local --global :settings=bundle
@composer-install: -n -q -v -o -a -W -w -D --dev --no-dev --no-scripts --no-interaction --prefer-dist --prefer-source
  --optimize-autoloader --classmap-authoritative --no-progress --no-plugins --ignore-platform-reqs
  --ignore-platform-req= --working-dir= -d= --with-dependencies --with-all-dependencies --no-update --dry-run
  --no-autoloader --apcu-autoloader --no-ansi --ansi --quiet --strict --stability= -s= --optimize --latest
composer install,i,update,u,require,r,remove,dump-autoload,dumpautoload,show,info,outdated: @composer-install
composer validate,audit,create-project,init,why,why-not,depends,status,self-update,diagnose: @composer-install
composer clear-cache,licenses,about,check-platform-reqs,bump,fund,suggests: @composer-install
composer run,run-script,test: --timeout= --dev --no-dev :passes :runs
composer: --version -V
@rustup-update: --toolchain= --profile= --no-self-update -v -q -y --path= -c= -t=
rustup update,install,default,show,target,component,toolchain,override,self,check,doc,uninstall: @rustup-update
rustup completions: @rustup-update
opam install,update,upgrade,init,switch,list,show,pin,env,remove: -y -q --yes --deps-only --with-test --with-doc
  --disable-sandboxing --working-dir --bare -n
cabal build,test,run,update,install,clean,configure,check,freeze,haddock,sdist,bench,init: -v? -j? -O? -f=
  --enable-tests --disable-tests --only-dependencies --dependencies-only --enable-benchmarks --lib --overwrite-policy=
  :passes :runs
stack build,test,setup,install,clean,haddock,update,init,new,bench,ls,path: --fast --pedantic --test --no-run-tests
  --coverage --ta= --file-watch --flag= --system-ghc --copy-bins --only-dependencies --resolver= -j= :runs
cpan,cpanm: :fed -n -q -v -S -L= --notest --installdeps --quiet --sudo --local-lib=
luarocks install,list,remove,make,build: --local --server= --tree= --deps-only --only-deps
pod install,update,repo,init,outdated,deintegrate: --repo-update --verbose --silent --no-repo-update --deployment
carthage bootstrap,update,build: --platform= --use-xcframeworks --cache-builds --no-use-binaries
vcpkg install,list,update,upgrade,remove,search,integrate: --triplet= --recurse --clean-after-build
conan install,create,profile,remote,search: --build= -s= -of= --output-folder= -o= -pr= --profile= --update
"""

VALUES = {
    "npm": r"(?:registry|save-exact|save-prefix|init-author-name|init-author-email|init-license|fund|audit|loglevel|"
    r"progress|strict-ssl|legacy-peer-deps|engine-strict|package-lock|@[\w-]+:registry)(?:[ =][\w.:/@~^-]*)?",
    "conda": r"(?:channels|channel_priority|auto_activate_base|solver|always_yes|ssl_verify)(?: [\w.:/-]*)?",
    "bundle": r"(?:path|without|with|deployment|frozen|jobs|retry|specific_platform|force_ruby_platform|"
    r"set (?:path|without|with|deployment|frozen|jobs|retry) [\w./: -]*)?(?: [\w./:-]*)*",
}
"""Settings of package managers that choose neither programs nor their folders."""
