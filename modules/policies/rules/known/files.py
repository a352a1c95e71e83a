"""Programs that show, make, move and change files, texts and the machine."""

TABLE = """
# They only look at their arguments, whatever these are.
base64,base32,basenc,basename,bc,break,cat,chgrp,chmod,chown,cksum,b2sum,clear,cmp,column,comm,continue,cut,date: *
df,diff,dir,dircolors,dirname,dirs,du,echo,egrep,exit,expand,expr,factor,false,fgrep,fmt,fold,free: *
getconf,getent,grep,groups,head,hexdump,hd,hostname,id,join,jq,locale,logname,ls,lsof,lsb_release: *
lscpu,lsblk,lsusb,lspci,md5sum,md5,mktemp,netstat,nl,nproc,numfmt,od,paste,pathchk,pgrep,pidof,ping: *
popd,pr,printenv,ps,pstree,ptx,pwd,readelf,readlink,realpath,return,rev,seq,sha1sum,sha224sum,sha256sum,sha384sum: *
sha512sum,shasum,shift,shuf,size,sleep,ss,stat,strings,sum,sw_vers,sync,tac,tail,times,top,tput,tr,true,tsort,tty: *
type,ulimit,umask,uname,unexpand,unset,uptime,users,vdir,vmstat,wait,wc,whereis,which,who,whoami,yes,zcat,bzcat: *
xzcat,zstdcat,pbcopy,pbpaste,nvidia-smi,cal,host,dig,nslookup,ifconfig,tokei,scc,eza,exa: *
set,test,[,read,declare,typeset,local,export,readonly,getopts,kill,killall,pkill,jobs,printf,pushd,cd,logger,envsubst:
  *
uuidgen,say,dos2unix,unix2dos,chattr,lsattr,xclip,zgrep,pwdx,lscpu: *
ip addr,address,a,link,l,route,r,neigh,rule: *
nc: -z -v -w= -l -p= -u -n -k
cloc: --exclude-dir= --include-lang= --exclude-lang= --json --csv --md --by-file --vcs= --quiet

file: * -C! --compile!

# They make files, or change them; a rule that names them says so.
mkdir,rmdir,rm,touch,truncate,unlink,shred,gzip,gunzip,bzip2,bunzip2,xz,unxz,zstd,unzstd,lz4,mkfifo,sha3sum,rmtree: *
cp,mv,ln: * :makes=last
link: :makes=1
dd: :makes=0
tee: -a -i -p --append --ignore-interrupts --output-error? :out=0
split,csplit: -a= -b= -C= -d -x -e -l= -n= -t= -u --suffix-length= --bytes= --line-bytes= --numeric-suffixes? --lines=
  --number= --separator= --unbuffered --verbose --additional-suffix= --hex-suffixes? --elide-empty-files :makes=0
install: -b -c -C -d -D -g= -m= -o= -p -s -t= -T -v --compare --directory --group= --mode= --owner=
  --preserve-timestamps --strip --target-directory= --no-target-directory --verbose :makes=last
uniq: -c -d -D -f= -i -s= -u -w= -z --count --repeated --all-repeated? --skip-fields= --group? --ignore-case
  --skip-chars= --unique --check-chars= --zero-terminated :out=1
xxd: -a -b -c= -C -d -e -E -g= -h -i -l= -n= -o= -p -ps -r -s= -u -v -cols= -len= -seek= :out=1 :single
sort: -b -d -f -g -i -M -h -n -R -r -V -c -C -k= -m -o=> -s -S= -t= -T= -u -z --ignore-leading-blanks
  --dictionary-order --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort
  --numeric-sort --random-sort --reverse --sort= --version-sort --check? --key= --merge --output=> --stable
  --buffer-size= --field-separator= --temporary-directory= --unique --zero-terminated --parallel= --debug
iconv: -f= -t= -o=> -c -s -l --from-code= --to-code= --output=>
shuf: -e -i= -n= -o=> -r -z --echo --input-range= --head-count= --output=> --repeat --zero-terminated
tree: -a -d -l -f -x -L= -R -P= -I= -o=> -p -u -g -s -h -D -F -q -N -Q -i -A -S -n -C -X -J -H= -T= -v -t -c -U -r
  --noreport --charset= --filelimit= --timefmt= --dirsfirst --prune --ignore-case --matchdirs --du --gitignore --sort=
  --inodes --device --si --fromfile --filesfirst
tar,gtar,bsdtar: -A -c -d -r -t -u -x -f=<archive> -C= -z -j -J -Z -a -v -w -p -P -h -k -m -O -S -U -W -X= -b= -g= -n
  -o -s -l -G --create --extract --get --list --append --update --diff --compare --delete --concatenate --catenate
  --file=<archive> --directory= --gzip --gunzip --bzip2 --xz --lzma --lzip --zstd --auto-compress --verbose --exclude=
  --exclude-from= --exclude-vcs --exclude-vcs-ignores --strip-components= --strip= --transform= --xform= --owner=
  --group= --mode= --mtime= --numeric-owner --same-owner --no-same-owner --preserve-permissions --same-permissions
  --no-same-permissions --overwrite --keep-old-files --skip-old-files --keep-newer-files --one-top-level? --wildcards
  --no-wildcards --anchored --no-anchored --totals? --to-stdout --dereference --hard-dereference --sort= --format=
  --absolute-names --remove-files --sparse --touch --one-file-system --no-recursion --recursion --show-transformed
  --verify --warning= --null --acls --xattrs --selinux --unlink-first --recursive-unlink --no-auto-compress
  --listed-incremental= --newer= --newer-mtime= -N= --version --help --block-number --quoting-style= :bundle :makes=0
zip: -r -q -v -9 -0 -1 -2 -3 -4 -5 -6 -7 -8 -j -x= -i= -u -f -d -m -e -P= -y -X -D -o -l -s= -n= -b= -g -A -z -t= -h
  --exclude= --quiet :makes=0
unzip: -l -o -n -q -qq -d= -j -x= -t -v -Z -p -u -f -a -b -C -L -P= -V -X -K -O= :makes=0
7z,7za,unrar,ar: -o? -y -p? -r -bd :makes=0 :at
patch: -p= -N -R -i= -s -b -t -f -l -u -E -d= --strip= --forward --reverse --input= --silent --quiet --backup
  --dry-run --batch --force --directory= --binary --merge? --verbose --no-backup-if-mismatch --unified --fuzz= -F=
  :makes=0
rsync: :nodash -a -v -q -r -R -u -l -L -k -H -p -E -A -X -o -g -t -O -J -S -n -W -x -c -d -z -h -P -C -i -m -y -I -b
  -s -0 -4 -6 --verbose --quiet --archive --recursive --relative --update --links --copy-links --hard-links --perms
  --chmod= --owner --group --chown= --times --omit-dir-times --dry-run --whole-file --one-file-system --existing
  --ignore-existing --remove-source-files --delete --delete-before --delete-after --delete-during --delete-excluded
  --force --max-delete= --max-size= --min-size= --partial --partial-dir= --prune-empty-dirs --numeric-ids --timeout=
  --ignore-times --size-only --checksum --exclude= --exclude-from= --include= --include-from= --files-from= --from0
  --stats --human-readable --progress --info= --itemize-changes --out-format= --bwlimit= --inplace --append --compress
  --compress-level= --backup --backup-dir= --suffix= --filter= -f= --cvs-exclude --port= --delay-updates --mkpath
  --safe-links --no-perms --no-owner --no-group --no-times --acls --xattrs --link-dest= --sparse --list-only
  :makes=last
curl: -s -S -f -L -i -I -v -k -g -j -l -n -N -q -R -Z -# -0 -1 -2 -3 -4 -6 -a -B -G -J> -O> -o=> -D=> -c=> -X= -H= -d=
  -F= -u= -A= -b= -e= -m= -r= -w= -x= -y= -Y= -z= -T= -C= -p -M --silent --show-error --fail --fail-with-body
  --fail-early --location --location-trusted --include --head --verbose --insecure --globoff --get --compressed
  --output=> --output-dir=> --remote-name> --remote-name-all> --remote-header-name> --create-dirs --request= --header=
  --data= --data-raw= --data-binary= --data-urlencode= --data-ascii= --json= --form= --form-string= --user=
  --user-agent= --cookie= --cookie-jar=> --referer= --max-time= --connect-timeout= --retry= --retry-delay=
  --retry-max-time= --retry-connrefused --retry-all-errors --range= --write-out= --proxy= --noproxy= --http1.1
  --http1.0 --http2 --http3 --tlsv1.2 --tlsv1.3 --tlsv1 --ssl-reqd --proto= --proto-redir= --proto-default=
  --max-redirs= --dump-header=> --upload-file= --continue-at= --resolve= --connect-to= --interface= --limit-rate=
  --cacert= --capath= --cert= --key= --cert-type= --key-type= --oauth2-bearer= --basic --digest --ntlm --anyauth
  --netrc --netrc-optional --no-buffer --no-progress-meter --progress-bar --parallel --parallel-max= --url=
  --url-query= --ipv4 --ipv6 --keepalive-time= --raw --time-cond= --path-as-is --request-target= --dns-servers=
  --doh-url= --aws-sigv4= --max-filesize= --speed-limit= --speed-time= --tr-encoding --trace-time --stderr=> --trace=>
  --trace-ascii=> --version -V --help -h --remove-on-error --no-clobber
wget: -q -nv -v -c -N -S -r -l= -k -K -m -p -L -H -np -nc -nd -nH -x -4 -6 -O=> -P=> -o=> -a=> -i= -t= -T= -w= -U= -A=
  -R= -D= -I= -X= -Q= -E --quiet --no-verbose --verbose --continue --timestamping --server-response --recursive
  --level= --convert-links --mirror --page-requisites --relative --span-hosts --no-parent --no-clobber
  --no-directories --no-host-directories --force-directories --output-document=> --directory-prefix=> --output-file=>
  --append-output=> --input-file= --tries= --timeout= --wait= --random-wait --user-agent= --accept= --reject=
  --domains= --spider --no-check-certificate --header= --post-data= --post-file= --method= --body-data= --user=
  --password= --show-progress --progress= --content-disposition --trust-server-names --max-redirect= --waitretry=
  --retry-connrefused --limit-rate= --no-proxy --no-cookies --load-cookies= --save-cookies=> --keep-session-cookies
  --https-only --inet4-only --inet6-only --cut-dirs= --version --help --no-hsts --backups? --adjust-extension --quota=
  --no-cache --restrict-file-names= --dns-timeout= --connect-timeout= --read-timeout= --compression= :makes=0
rg: -n -N -i -s -S -w -x -v -c -l -L -o -q -F -P -U -u -uu -uuu -a -e= -f= -g= -t= -T= -A= -B= -C= -m= -M= -r= -j= -d=
  -H -h -I -0 -b -p -. --line-number --no-line-number --ignore-case --smart-case --case-sensitive --word-regexp
  --line-regexp --invert-match --count --count-matches --files-with-matches --files-without-match --only-matching
  --quiet --fixed-strings --pcre2 --multiline --multiline-dotall --unrestricted --text --regexp= --file= --glob=
  --iglob= --type= --type-not= --type-add= --type-list --after-context= --before-context= --context= --max-count=
  --max-columns= --max-columns-preview --replace= --threads= --max-depth= --max-filesize= --hidden --no-hidden
  --follow --no-ignore --no-ignore-vcs --no-ignore-parent --ignore-file= --files --json --sort= --sortr= --stats
  --trim --null --color= --colors= --column --no-column --heading --no-heading --with-filename --no-filename --vimgrep
  --pretty --passthru --no-messages --no-config --debug --encoding= --one-file-system --binary --crlf
  --context-separator= --byte-offset --line-buffered --include-zero --version --engine= --sort-files --block-buffered
  --no-require-git
ag,ack: -i -l -n -w -c -v -Q -A= -B= -C= -G= -g= -o -s -S -L -a -u -U -h -H --python --js --ts --ruby --go --java
  --ignore= --hidden --nogroup --nocolor --literal --color --group --type= --noheading --count
fd,fdfind: -H -I -u -s -i -g -F -a -l -L -p -0 -t= -e= -E= -d= -S= -o= -1 -q --hidden --no-ignore --unrestricted
  --glob --case-sensitive --ignore-case --fixed-strings --absolute-path --list-details --follow --full-path --print0
  --type= --extension= --exclude= --max-depth= --min-depth= --exact-depth= --size= --changed-within= --changed-before=
  --color= --max-results= --owner= --no-ignore-vcs --version
bat,batcat: -n -p -A -l= -r= -H= -P --plain --number --language= --line-range= --style= --color= --theme= --paging=
  --no-pager --list-languages --decorations= --wrap=
less,more,most: -R -S -N -X -F -i -I -n -r -E -e -M -m -s -g :plus
man: -k -f -w :plus
yq: -r -e -P -i! -j -o= -p= -I= -n -s= -N -C -M --inplace! --prettyPrint --output-format= --input-format=
  --exit-status --raw-output --null-input --indent= --no-colors -y -Y -c
openssl version,rand,sha256,dgst,s_client,x509,verify,base64,md5,passwd,ciphers,prime: -hex -base64 -text -noout -in=
  -subject -issuer -dates -enddate -startdate -fingerprint -sha256 -sha1 -sha512 -md5 -serial -checkend= -connect=
  -servername= -showcerts -CAfile= -inform= -outform= -pubkey -modulus -days= -a -A -d -e -1 -6 -5 -salt= -stdin -v
  -out=> -r -brief -tls1_2 -tls1_3 -nameopt= -ext= -signature= -sign= -verify= -quiet :single
openssl genrsa,genpkey,req,rsa,ecparam,pkcs12,pkey,ec,dhparam: -out=> -new -newkey= -x509 -nodes -keyout=> -days=
  -subj= -in= -key= -aes256 -algorithm= -pkeyopt= -name= -genkey -noout -text -pubout -passout= -passin= -sha256
  -addext= -export -inkey= -certfile= -CA= -CAkey= -CAcreateserial -extensions= -check -modulus -traditional -out=>
  -legacy -nokeys :single
ffmpeg,ffprobe: -i= -y -n -v= -c:v= -c:a= -c= -b:v= -b:a= -vf= -r= -s= -ss= -t= -to= -crf= -preset= -an -vn -map= -f=
  -hide_banner -loglevel= -framerate= -pix_fmt= -show_format -show_streams -print_format= -of= -show_entries= :single
gpg: --verify --list-keys --list-secret-keys --keyid-format= --fingerprint --import --armor --export --recv-keys
  --keyserver= --dearmor --output=> -o=> --batch --yes --no-tty --detach-sign -a -b -d -e -r= --recipient= --decrypt
  --encrypt --sign --full-generate-key --gen-key --list-packets --quiet -q -k -K
ssh-keygen: -t= -b= -C= -f=> -N= -q -l -y -R= -F= -E= -p -P= -A -e -m=
scp: :nodash -r -q -p -C -P= -i= -4 -6 -B -v -l= :makes=last
dot,neato,plantuml: -T= -Tpng -Tsvg -Tpdf -o=> -K= -O! -v
pandoc: -o=> -s --output=> --standalone --toc --toc-depth= --metadata= -M= -V= --variable= --number-sections --mathjax
  --highlight-style= --wrap= --columns= -N --css= -c= --self-contained --embed-resources --citeproc --bibliography=
  --resource-path= --reference-doc= --version
xmllint: --noout --format --xpath= --schema= --output=> --valid --html --version
createdb,dropdb,createuser,pg_isready: -U= -h= -p= -O= -E= -T= -e -i -w -W -d= -s -q --if-exists --encoding= --owner=
  --template=
pg_dump,pg_dumpall: -U= -h= -p= -d= -f=> -F= -t= -n= -a -s -c -C -O -x -v -w -W -j= --file=> --format= --no-owner
  --no-acl --clean --if-exists --schema-only --data-only --dbname= --host= --port= --username=
pg_restore: -U= -h= -p= -d= -c -C -O -x -v -j= -1 --no-owner --clean --if-exists --dbname= --no-acl
mysqldump: -u= -h= -P= -p? --single-transaction --databases --all-databases --no-data --no-tablespaces --routines
  --user= --host=
redis-server: --port= --daemonize= --save= --appendonly= --version
mongod,mongodump,mongorestore: --dbpath= --port= --db= --out=> --uri= --drop --gzip --archive? --fork --logpath=>
"""

FIND = """
find,gfind: -H -L -P -O1 -O2 -O3 -amin= -anewer= -atime= -cmin= -cnewer= -ctime= -daystart -depth -d -empty
  -executable -false -follow -fstype= -gid= -group= -ilname= -iname= -inum= -ipath= -iregex= -iwholename= -links=
  -lname= -ls -maxdepth= -mindepth= -mmin= -mount -mtime= -name= -newer= -newermt= -newerct= -newerat= -nogroup
  -noleaf -nouser -path= -perm= -print -print0 -printf= -prune -quit -readable -regex= -regextype= -samefile= -size=
  -true -type= -uid= -used= -user= -wholename= -writable -xdev -xtype= -a -and -o -or -not -delete! -fprint=>
  -fprint0=> -fls=> -fprintf=> -exec -execdir -ok -okdir -version --version -help --help :single
"""

OUTPUTS = r"(?:.*/)?(?:[\w.-]*\.(?:log|txt|out|err|csv|tsv|md|html|env)|\.env(?:\.\w+)?|log)"
"""Files that no program takes for code by default."""

VALUES = {"archive": r"[^:]+"}
"""A value that names a file of this machine: tar reaches other machines through a shell."""
