"""Programs that run a command given in their arguments."""

TABLE = """
env: -i -u= -C= -0 -v --ignore-environment --unset= --chdir= --null --debug :command :sets
command: -p -v -V :command
builtin: :command
exec: -c -l -a= :command
nohup: :command
nice: -n= -# --adjustment= :command
ionice: -c= -n= -t --class= --classdata= --ignore :command
time: -p -v -a -f= -o=> --portability --verbose --append --format= --output=> :command
gtime: -v -a -f= -o=> :command
timeout,gtimeout: -s= -k= -v --signal= --kill-after= --foreground --preserve-status --verbose :command=1
stdbuf: -i= -o= -e= --input= --output= --error= :command
setsid: -c -f -w --ctty --fork --wait :command
sudo: -u= -g= -E -H -n -S -k -b -P --user= --group= --preserve-env? --set-home --non-interactive --stdin :command
  :sets
doas: -u= -n :command
chrt: -f -r -o -b -i -v :command=1
taskset: :command=1
caffeinate: -d -i -m -s -u -t= :command
xargs: -0 -a= -d= -E= -I= -L= -n= -P= -s= -r -t -x --null --arg-file= --delimiter= --eof? --max-lines? --max-args=
  --max-procs= --max-chars= --no-run-if-empty --verbose --exit --show-limits :command :open
watch: -n= -d -t -b -e -g -c -p --interval= --differences? --no-title --color --precise --errexit --chgexit :command
  :joined
dotenv: -e= -f= :command :sets
cross-env,cross-env-shell: :command :sets
npx,bunx,pnpx: -y -q --yes --no --no-install --quiet -p= --package= :command
uvx: --from= --with= --python= -p= -q :command
pipx run: --spec= --python= -q :command
uv run: --with= --extra= --all-extras --group= --dev --no-dev --no-sync --frozen --locked --isolated --active
  --no-project --only-group= --all-groups --no-group= --with-requirements= --directory= --project= --package=
  --python= -p= -q --quiet --offline --refresh --no-default-groups :command
poetry run: :command
pipenv run: :command
pdm run: -v :command
rye run: :command
hatch run: :command
bundle exec: :command
conda run,micromamba run: -n= --name= --no-capture-output --live-stream :command
npm exec,x: -y --yes --no -q -w= --workspace= -p= --package= :command
pnpm exec,dlx: -r -w :command
yarn exec,dlx: -q :command
yarn workspace: :command=1
bun x: --bun :command
mise exec,x: :command
direnv exec: :command=1
"""
