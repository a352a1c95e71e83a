"""Compilers, build tools, test runners, linters and formatters."""

TABLE = """
make,gmake: -j? -k -s -B -i -n -w -q -t -r -R -S -l? -O? -C=! -f=<file>! -I=! --jobs? --keep-going --silent --quiet
  --always-make --dry-run --just-print --no-print-directory --directory=! --file=<file>! --makefile=<file>!
  --output-sync? --version -v --help -h --no-builtin-rules --warn-undefined-variables --print-directory --trace
  --touch --question --debug? -d -p --print-data-base :variables :passes :runs
ninja: -C=! -j= -v -k= -t= -n -w= -d= --version :runs
task build,test,lint,fmt,format,check,dev,run,clean,install,default,ci,docs,generate: @just
task: --list -l --version :alone
just: @just
@just: -l -n -v --list --dry-run --verbose --summary :passes :runs
cmake: -S= -B= -G= -A= -T= -D=<cmake> -U= -W= -j? -L -N -t= --build= --target= --config= --parallel? --install=
  --prefix= --preset= --fresh --version --verbose -v --clean-first --component= --strip --list-presets --graphviz=
  --log-level= -Wno-dev -Wdev --use-stderr :runs
ctest: -j? -V -VV -R= -E= -C= -L= -N --parallel? --output-on-failure --test-dir= --verbose --rerun-failed --timeout=
  --tests-regex= --build-config= --stop-on-failure --repeat= --preset= --schedule-random -LE= --quiet -Q --progress
  --no-tests= --label-regex= --exclude-regex= :runs
cpack: -G= -C= --config=! -V :runs
meson setup,compile,test,install,configure,dist: -C= -j= -v -D=<cmake> --buildtype= --prefix= --reconfigure --wipe
  --default-library= --suite= --verbose --print-errorlogs --destdir= --no-rebuild --libdir= --werror --warnlevel=
  --optimization= --debug --strip --quiet --timeout-multiplier= --jobs= --clean :runs
meson: --version
autoreconf,autoconf,automake,aclocal,libtoolize: -i -f -v -c --install --force --verbose --add-missing --copy
  --foreign :runs
bazel,bazelisk build,test,clean,query,fetch,info,version,shutdown,sync,mod,cquery: -c= -k -j= --config=
  --compilation_mode= --jobs= --test_output= --verbose_failures --keep_going --cpu= --platforms= --expunge --output=
  --test_filter= --test_tag_filters= --build_tag_filters= --curses= --color= --nocache_test_results
  --cache_test_results= --test_arg= --define=<cmake> --stamp :runs
bazel,bazelisk run: -c= --config= --compilation_mode= --platforms= --verbose_failures :passes :runs
gcc,g++,cc,c++,clang,clang++: :at -o=> -c -S -E -g? -O? -s -w -v -M -D= -U= -I= -L= -l= -x= -W?<warn> -f?<warn>
  -m?<warn> -std= -ansi -pedantic -pthread -shared -static -pipe -MD -MMD -MP -MF=> -MT= -include= -isystem= -ggdb
  -ggdb3 -Wall -Wextra -Werror -Wpedantic -nostdlib -rdynamic -pie -no-pie -march= -mtune= --version --std=
  -dumpversion -dumpmachine
clang-format: -i! --style= -style= --dry-run -n --Werror --version --verbose --assume-filename=
clang-tidy: -p= --checks= --fix! --quiet -checks= --header-filter= --warnings-as-errors= -j=
rustc: :at -o=> -O -g --edition= --crate-type= --crate-name= --target= --version -V --explain= --print= --test --emit=
  -v --cfg=
rustfmt: --check --edition= --all -l -v --emit=
cargo: -q -v -vv --quiet --verbose --version -V --list --offline --locked --frozen --color= --explain= -h --help
  :toolchain :inherits
@cargo: -r -p= -j= -F= --release --profile= --package= --workspace --all --exclude= --lib --bin= --bins --example=
  --examples --test= --tests --bench= --benches --all-targets --features= --all-features --no-default-features
  --target= --target-dir= --manifest-path= --message-format= --jobs= --keep-going --ignore-rust-version
  --future-incompat-report --timings? --doc --no-deps --document-private-items --open --no-run --no-fail-fast --fix
  --allow-dirty --allow-staged --broken-code
cargo build,b,check,c,clippy,fix,rustdoc,doc,d,clean: @cargo :runs
cargo test,t,bench,nextest: @cargo :passes :runs
cargo nextest run,list: @cargo -E= --no-capture --retries= --test-threads= --partition= -P= --failure-output=
  --success-output= --fail-fast :passes :runs
cargo run,r: @cargo :passes :runs
cargo fmt: --all --check -p= --package= -q --manifest-path= --message-format= :passes
cargo watch: -c -q -w= -i= -x=<cargo> --clear --quiet --watch= --exec=<cargo> :runs
cargo generate: -n= --git= --name= --branch= --path=
cargo new,init: --lib --bin --name= --edition= --vcs= :runs
cargo add,remove,rm: --dev -D -F= --build -B --features= --no-default-features --optional --git= --branch= --tag=
  --rev= --path= -p= --package= --dry-run --rename= --registry=
cargo install,uninstall: --path= --git= --branch= --tag= --rev= --version= --vers= --force -f --features=
  --all-features --no-default-features --bin= --bins --root=! --debug --profile= -j= --target= --list --registry=
  --no-track -F= :runs
@cargo-0: @cargo -d -e= -i= --edges= --invert= --depth= --duplicates --prefix= --limit= --token= --dry-run --no-verify
  --precise= --recursive --aggressive --format-version= --allow-dirty --all-targets --lcov --html --output-path=>
  --out= --each-feature --feature-powerset --registry= --index= --version= --undo --add= --deny= --root-deps-only -w
  -R :runs
cargo update,search,tree,fetch,metadata,vendor,package,publish,login,logout,owner,yank: @cargo-0
cargo generate-lockfile,locate-project,pkgid,info,version,verify-project,audit,deny,outdated: @cargo-0
cargo machete,udeps,bloat,expand,llvm-cov,tarpaulin,msrv,semver-checks,cyclonedx,geiger: @cargo-0
cargo criterion,mutants,insta: @cargo-0
go: :single
go build,install,vet,list,test,get,generate,clean,fmt,doc: -v -x -n -a -race -msan -cover -trimpath -mod= -modcacherw
  -tags= -o=> -p= -ldflags=<ldflags> -gcflags=<gcflags> -buildmode= -buildvcs= -count= -run= -bench= -benchmem
  -benchtime= -timeout= -short -coverprofile=> -covermode= -coverpkg= -parallel= -cpu= -failfast -json -list= -c -i
  -shuffle= -fuzz= -fuzztime= -vet= -args -u -t -d -m -f= -e -deps -cache -testcache -modcache -fuzzcache -all -src
  -C=! -update -installsuffix= -cpuprofile=> -memprofile=> -skip= -pgo= -test -find -export -compiled :single :passes
  :runs
go run: -race -v -x -tags= -mod= -ldflags=<ldflags> -trimpath -cover -a -n -C=! -work :single :stops :passes :runs
go mod init,tidy,download,vendor,verify,graph,why,edit: -v -x -go= -compat= -e -json -require= -replace= -dropreplace=
  -m -diff -module= :single
go work init,use,sync,edit,vendor: -r -go= :single
go env: -json -u= :single
go tool cover: -html= -func= -o=> :single
go version,help: -m -v :single
gofmt,gofumpt,goimports: -w! -l -s -d -e -extra -local= -r= -v :single
golangci-lint run,version,cache,linters,fmt,migrate: -v -c=! -E= -D= --timeout= --fix! --config=! --new-from-rev=
  --enable-all --disable-all --enable= --disable= --out-format= --fast --tests? --build-tags= --concurrency= -j=
  --issues-exit-code= :runs
staticcheck,govulncheck,errcheck,gosec,ineffassign,misspell,golint,revive,deadcode: -v -quiet -w! -fmt= -out=>
  -exclude= -severity= -f= -checks= -tests= -show= -json -mode= -set_exit_status -ignore= -config= -formatter= :single
  :runs
gotestsum: -f= --format= --junitfile= :stops :passes :runs
protoc: -I= --proto_path= --go_out= --go-grpc_out= --go_opt= --go-grpc_opt= --python_out= --java_out= --cpp_out=
  --grpc_python_out= --ts_out= --js_out= --descriptor_set_out=> --include_imports --version --pyi_out=
  --grpc-gateway_out= --openapiv2_out= --csharp_out= --ruby_out= --php_out= --kotlin_out=
  --experimental_allow_proto3_optional
buf generate,lint,breaking,build,format,mod,dep: --against= -w! --path= --template=! :runs
mvn,mvnd,mvnw: -q -B -U -o -e -X -T= -pl= -am -amd -ntp -fae -ff -fn -N -D?<maven> -P? -f=! -v -V -nsu --batch-mode
  --quiet --no-transfer-progress --version --offline --update-snapshots --projects= --also-make --threads=
  --activate-profiles= --file=! --errors --fail-at-end --debug :single :runs
gradle,gradlew: -q -i -s -S -d -x= -P= -p=! -t -m -a --no-daemon --info --stacktrace --quiet --debug --exclude-task=
  --project-prop= --project-dir=! --offline --parallel --no-parallel --max-workers= --continue --rerun-tasks --tests=
  --build-cache --no-build-cache --configuration-cache --no-configuration-cache --scan --no-scan
  --refresh-dependencies --console= --daemon --stop --warning-mode= --version -v --dry-run --continuous
  --full-stacktrace --args= --configuration= --write-locks --gradle-version= --distribution-type= --type= --dsl=
  :passes :runs
ant: -f=! -q -v -e -S -d -p -version -quiet -projecthelp :single :passes :runs
sbt,mill,lein: --version -v :passes :runs
javac: :at -d= -cp= -classpath= -source= -target= -sourcepath= -g -Xlint -Xlint:all -encoding= -nowarn -verbose
  --release= --version -version -parameters -deprecation -h= --module-path= :single
java: :at -cp= -classpath= --class-path= -jar -Xmx?<size> -Xms?<size> -D?<property> -ea -version --version -server
  --add-opens= --add-modules= --module-path= -p= --enable-preview -esa :single :stops :passes :runs
jar: :at -c -x -t -u -f= -v -m= -e= -C= --create --extract --file= --list --main-class= :bundle :makes=0
kotlinc,scalac,scala-cli: :at -d= -include-runtime -version :single :runs
@dotnet-1: -c= -o= -r= -f= -v= -n= -p=<cmake> -t= --configuration= --output= --runtime= --framework= --no-restore
  --no-build --verbosity= --self-contained? --project= --filter= --nologo --collect= --logger= --results-directory=
  --source= --version= --name= --force --interactive --no-incremental --launch-profile= --no-launch-profile
  --verify-no-changes --no-dependencies --language= -lang= --api-key= -s= -k= -d -h --include-symbols --blame
  --settings=! --tool-path= --outdated --locked-mode --global -g --prerelease :passes :runs
dotnet build,run,test,restore,publish,clean,add,new,pack,format,watch,list,remove,sln,nuget: @dotnet-1
dotnet workload: @dotnet-1
dotnet tool install,update,list,uninstall,restore: -g --global --version= --local --tool-path=! --prerelease
dotnet ef migrations,database,dbcontext: -p= -s= -o= -c= --project= --startup-project= --context= --output-dir=
  --no-build -v :runs
dotnet: --version --info --list-sdks --list-runtimes -h
swift build,test,package,run: -c= -v --configuration= --product= --target= --filter= --parallel --enable-code-coverage
  --skip= --show-bin-path --package-path= --static-swift-stdlib --enable-test-discovery -q :passes :runs
swift: --version
swiftlint,swiftformat,ktlint: --fix! --strict --lint --autocorrect! --quiet --config=! --version -F! --format! :runs
xcodebuild: -project= -workspace= -scheme= -configuration= -sdk= -destination= -derivedDataPath= -quiet -list
  -showsdks -version -archivePath= -exportArchive -exportPath= -exportOptionsPlist= -allowProvisioningUpdates
  -resultBundlePath= -enableCodeCoverage= -only-testing:= -target= -arch= -showBuildSettings :single :passes :runs
@flutter-2: -d= -v -t= -o= --release --debug --profile --web --device-id= --target= --flavor= --dart-define=
  --split-debug-info= --obfuscate --coverage --platforms= --org= --apply! --dry-run --build-number= --build-name=
  --web-renderer= --no-pub --set-exit-if-changed --line-length= -l= --delete-conflicting-outputs
  --no-sound-null-safety --web-port= --web-hostname= --template= --fatal-infos --no-fatal-infos --concurrency= -j=
  --reporter= --major-versions --update-goldens --verbose --android-licenses --target-platform= --split-per-abi
  --no-codesign :passes :runs
flutter,dart,fvm pub,run,test,build,analyze,format,create,doctor,clean,devices,upgrade,gen-l10n: @flutter-2
flutter,dart,fvm fix,install,channel,config,drive,precache,compile,flutter: @flutter-2
flutter,dart: --version --verbose -v --disable-analytics
zig build,test,run,fmt,init,version,fetch,cc,init-exe,init-lib,build-exe,build-lib,build-obj: -Doptimize= -Dtarget=
  -O= -target= --release? --summary= -lc --check --save? -fstrip -freference-trace? --watch :single :passes :runs
nim c,cpp,js,check,doc,r,compile: -d= -r -o=> --run --opt= --mm= --gc= --hints= --verbosity= -f --threads= :single
  :passes :runs
@nimble-3: -y -v --release --production --force --profile= -p= --watch -w --error-trace --no-debug -o=> -j= --display=
  -d= --frozen --accept :passes :runs
nimble,crystal,shards,dune,dub install,build,test,run,deps,update,spec,init,tasks,clean,fmt: @nimble-3
nimble,crystal,shards,dune,dub runtest,utop,tool,prune,check: @nimble-3
@mix-4: --force --only= --all --check-formatted --warnings-as-errors --cover --trace --strict --no-deps-check
  --no-compile --seed= --stale --failed --exclude= --include= --max-failures= --sup --no-ecto --no-html --no-assets
  --umbrella --app= --module= --overwrite --unused --quiet --check-unused --check-locked --if-missing --dry-run --yes
  --no-install --database= --live --binary-id --no-start --slowest= :runs
mix deps.get,deps.compile,deps.update,deps.tree,deps.clean,deps.unlock,compile,test,format: @mix-4
mix phx.server,phx.new,phx.routes,phx.digest,phx.gen.html,phx.gen.schema,phx.gen.context: @mix-4
mix phx.gen.live,phx.gen.auth,phx.gen.secret,phx.gen.json,ecto.create,ecto.migrate,ecto.setup: @mix-4
mix ecto.reset,ecto.drop,ecto.rollback,ecto.gen.migration,credo,dialyzer,docs,hex.publish: @mix-4
mix hex.build,local.hex,local.rebar,new,release,clean,assets.deploy,assets.build,assets.setup: @mix-4
mix setup,help,xref,coveralls,coveralls.html,archive.install,hex.outdated,hex.audit,sobelow: @mix-4
mix doctor: @mix-4
mix run: --no-halt --no-start --no-compile :passes :runs
rebar3 compile,eunit,ct,release,deps,clean,dialyzer,upgrade,new,xref,get-deps,unlock,proper,edoc: --cover -v --suite=
  :runs
rake: -T -A -P -t -j? -m -v -q -n -s --tasks --trace? --verbose --quiet --silent --dry-run --prereqs --all :passes
  :runs
@rails-5: -p= -b= -e= -d -j= -c= -a= -v -T --port= --binding= --environment= --skip-bundle --api --database= --css=
  --javascript= --skip-test --skip-git --skip-migration --skip-active-record --force --minimal --no-test-framework
  --skip-spec --verbose --defer-output :runs
rails,bin/rails server,s,db:migrate,db:create,db:setup,db:seed,db:reset,db:drop,db:rollback: @rails-5
rails,bin/rails db:prepare,db:schema:load,db:test:prepare,db:migrate:status,test,test:system: @rails-5
rails,bin/rails test:all,routes,generate,g,destroy,d,new,assets:precompile,assets:clobber: @rails-5
rails,bin/rails assets:clean,stats,notes,about,log:clear,tmp:clear,tmp:create,zeitwerk:check: @rails-5
rails,bin/rails webpacker:install,webpacker:compile,active_storage:install,action_text:install: @rails-5
rails,bin/rails javascript:install:esbuild,css:install:tailwind,importmap:install: @rails-5
rails,bin/rails credentials:show,secret,time:zones:all,middleware,initializers,dev:cache: @rails-5
rails,bin/rails app:update,version: @rails-5
rails console,c: -s --sandbox :fed :runs
rspec: -f= -t= -e= -P= -b -c -p? -n= -fd -fp --format= --tag= --example= --pattern= --order= --seed= --fail-fast?
  --only-failures --next-failure --color --profile? --backtrace --dry-run --out=> -o=> --no-color --exclude-pattern=
  --force-color --bisect :runs
rubocop,standardrb,erblint,brakeman,reek,solargraph: -a! -A! -x -f= -P -D -q -z --autocorrect! --auto-correct!
  --autocorrect-all! --fix! --format= --only= --except= --parallel --auto-gen-config --fail-level= --display-cop-names
  --lint-all --no-pager --exit-on-warn --no-exit-on-warn -o=> --server --config= -c= --force-exclusion :runs
jekyll build,serve,new,clean,doctor,server: -H= -P= -s= -d= -w -l -I -o -t -D -V --host= --port= --watch --livereload
  --incremental --drafts --source= --destination= --trace --config= --baseurl= --future --force --no-watch :runs
bundle-audit check,update: -u --update
phpunit,pest: -c=! --filter= --testsuite= --coverage-text --coverage-html= --colors? --stop-on-failure --group=
  --exclude-group= --testdox --debug -v --verbose --configuration=! --no-coverage --order-by= --coverage-clover=>
  --log-junit=> --parallel --coverage --compact --display-warnings :runs
@phpstan-6: -l= -c=! -v --level= --memory-limit= --dry-run --diff --standard= --no-progress --configuration=!
  --config=! --error-format= --extensions= --show-info= --no-cache --test --using-cache= --rules= --verbose
  --allow-risky= --format= --no-interaction --ansi --threads= --min-msi= --clear-cache --generate-baseline --xdebug
  :runs
phpstan,psalm,phpcs,phpcbf,php-cs-fixer,pint,rector,infection,phpmd,phan,deptrac,ecs analyse: @phpstan-6
phpstan,psalm,phpcs,phpcbf,php-cs-fixer,pint,rector,infection,phpmd,phan,deptrac,ecs analyze,fix: @phpstan-6
phpstan,psalm,phpcs,phpcbf,php-cs-fixer,pint,rector,infection,phpmd,phan,deptrac,ecs process: @phpstan-6
phpstan,psalm,phpcs,phpcbf,php-cs-fixer,pint,rector,infection,phpmd,phan,deptrac,ecs check: @phpstan-6
phpcs,phpcbf,psalm,pint,infection,phpmd,phan,ecs: -p -s -n --standard= --extensions= --ignore= --colors --test --dirty
  --show-info= --no-cache --config=! --report= --memory-limit= :alone :runs

# Python
pytest,py.test: :at -v -vv -vvv -q -qq -x -s -l -k= -m= -n= -r= -rA -ra -rs -rf -rP -rN -rfE -h --co --collect-only
  --maxfail= --lf --ff --nf --last-failed --failed-first --new-first --sw --stepwise --stepwise-skip --tb=
  --durations= --durations-min= --capture= --cov? --cov-report= --cov-fail-under= --cov-branch --cov-append
  --cov-config= --no-cov --cov-context= --no-cov-on-fail --junitxml=> --junit-xml=> --timeout= --timeout-method=
  --numprocesses= --dist= --maxprocesses= --reruns= --reruns-delay= --only-rerun= --html=> --self-contained-html
  --ignore= --ignore-glob= --deselect= --strict --strict-markers --strict-config --disable-warnings
  --disable-pytest-warnings --no-header --no-summary --show-capture= --showlocals --color= --verbose --quiet
  --exitfirst --import-mode= --basetemp=! --cache-clear --cache-show? --pyargs --doctest-modules --doctest-glob=
  --doctest-continue-on-failure --runxfail --markers --fixtures --fixtures-per-test --setup-show --setup-only
  --setup-plan --asyncio-mode= --benchmark-only --benchmark-skip --benchmark-disable --benchmark-autosave
  --benchmark-save= --benchmark-compare? --benchmark-json=> --benchmark-sort= --benchmark-columns=
  --benchmark-min-rounds= --hypothesis-seed= --hypothesis-show-statistics --hypothesis-profile= --snapshot-update
  --ds= --reuse-db --create-db --nomigrations --no-migrations --random-order --random-order-seed= --randomly-seed=
  --randomly-dont-reorganize --forked --looponfail -f --headed --browser=<browser> --slowmo= --tracing= --log-level=
  --log-cli-level= --log-file=> --full-trace --code-highlight= --assert= --splits= --group= --testmon --picked?
  --force-sugar --nbval --nbmake --mypy --flake8 --black --ruff --pylint --isort --runslow --run-slow --slow
  --integration --live --record-mode= --vcr-record= --report-log=> --trace-config --debug --version -V --noconftest
  --no-showlocals --verbosity= -W=<warnings> --pythonwarnings=<warnings> -c=! --rootdir=! --confcutdir=!
  --config-file=! -p=<plugin> -o=<ini> --override-ini=<ini> --pdb --sparse --alluredir= --allure-dir= --md-report
  --use-nose :runs
unittest: -v -q -f -b -c -k= -s= -p= -t= --verbose --quiet --failfast --buffer --locals --durations= :runs
coverage run: -m=<pymodule> -p -a --source= --branch --parallel-mode --append --omit= --include= --rcfile=!
  --concurrency= :stops :passes :runs
coverage report,html,xml,json,erase,combine,lcov,debug: -m -i -d= -o=> --include= --omit= --fail-under= --show-missing
  --skip-covered --skip-empty --precision= --sort= --rcfile=! --data-file= --keep --append -q --title= --format=
  --directory=
mypy: -p= -m= -v --strict --ignore-missing-imports --no-error-summary --show-error-codes --pretty --non-interactive
  --no-incremental --python-version= --platform= --exclude= --package= --module= --check-untyped-defs
  --disallow-untyped-defs --warn-unused-ignores --warn-return-any --no-implicit-optional --follow-imports=
  --namespace-packages --explicit-package-bases --disallow-any-generics --show-column-numbers --show-error-context
  --hide-error-context --warn-unreachable --warn-redundant-casts --enable-error-code= --disable-error-code=
  --cache-dir= --txt-report= --html-report= --junit-xml=> --install-types --config-file=! --files
  --scripts-are-modules --no-strict-optional --strict-optional --allow-untyped-defs --disallow-incomplete-defs
  --no-site-packages --strict-equality --version -V --implicit-reexport --no-implicit-reexport
  --disallow-untyped-calls --disallow-subclassing-any --error-summary --no-color-output --sqlite-cache
  --skip-version-check --warn-unused-configs :runs
dmypy run,start,stop,status,check,restart: --timeout= :runs
ruff: -q -v -n -s --quiet --verbose --version -V --config=! --isolated --no-cache --silent --fix! :alone
ruff check,format,rule,clean,server,linter,config: -q -v -e -n -w --fix! --fix-only! --unsafe-fixes --no-fix --diff
  --check --select= --ignore= --extend-select= --extend-ignore= --output-format= --config=! --line-length=
  --target-version= --exclude= --extend-exclude= --show-files --show-fixes --show-settings --statistics --exit-zero
  --exit-non-zero-on-fix --preview --no-cache --watch --isolated --force-exclude --respect-gitignore --add-noqa!
  --quiet --verbose --per-file-ignores= --all --output-file=> --stdin-filename= --unfixable= --fixable= --extension=
  --range= --cache-dir= --format= --no-preview
@black-7: -l= -t= -q -v -i! -r -c -d -a -p= -S -C -x= -m= -e= --check --check-only --diff --line-length= --line-width=
  --target-version= --quiet --verbose --exclude= --extend-exclude= --include= --profile= --recursive --in-place!
  --inplace! --in-place-all! --style= --skip= --skip-glob= --color --no-color --fast --safe --preview --config=!
  --settings-path= --skip-string-normalization -W= --workers= --remove-all-unused-imports --remove-unused-variables
  --ignore-init-module-imports --expand-star-imports --imports= --aggressive --max-line-length= --py3-plus --py36-plus
  --py37-plus --py38-plus --py39-plus --py310-plus --py311-plus --parallel --force-exclude= --stdin-filename= --src=
  --version --show-files --float-to-top --force-single-line-imports --sl --combine-as --ca --tc --trailing-comma
  --dialect= --reformat --lint --unstable --filter-files --gitignore --multi-line= --wrap-summaries=
  --wrap-descriptions= --keep-runtime-typing --atomic --ignore= --select= --ext= --experimental
black,isort,yapf,autopep8,autoflake,pyupgrade,docformatter,ssort,add-trailing-comma,unify,pyink: @black-7
blue,djlint,sqlfluff,usort,ufmt: @black-7
@flake8-8: -q -v -r -j= -l= -ll -lll -n= -c=! -f= -s= -S= -e= -x= -d= -i -w -a -m= -o=> -I= -L= -A -D -b= -p= -t= -H=
  -C= --max-line-length= --max-complexity= --ignore= --extend-ignore= --select= --exclude= --exclude-dir= --statistics
  --count --show-source --disable= --enable= --jobs= --fail-under= --errors-only -E --output-format= --reports=
  --score= --rcfile=! --recursive? --severity-level= --confidence-level= --skip= --skips= --format= --config=!
  --min-confidence= --convention= --quiet-level= --ignore-words= --ignore-words-list= --version --fix!
  --write-changes! --write! --check --verbose --warnings --outputjson --project=! --pythonversion= --pythonplatform=
  --stats --strict --no-config-file --desc --local --requirement= --severity= --exclude-path= --json --shell=
  --external-sources --extends= --ext= --cache --no-progress --show-progress --config-file=! --isolated
  --error-exitcode= --std= --language= --suppress= --force --inline-suppr --no-error-on-unmatched-pattern --output=>
  --output-file=> --max-warnings= --diff --no-banner --source= --exit-code= --ignore-unfixed --scanners= --vuln-type=
  --dir= --soft-fail --framework= --compact --production --no-exit-code --indent= --color= --gha-warnings --baseline=
  --minimum= --only= --files= --dot :runs
flake8,pylint,pyflakes,pycodestyle,pydocstyle,bandit,vulture,radon,xenon,prospector,pylama: @flake8-8
darglint,interrogate,codespell,safety,pip-audit,deptry,pyright,basedpyright,ty,pyre,pytype: @flake8-8
semgrep,detect-secrets,yamllint,ansible-lint,cfn-lint,checkov,hadolint,shellcheck,shfmt: @flake8-8
actionlint,markdownlint,markdownlint-cli2,mdl,djhtml,cspell,alex,vale,proselint,typos,taplo: @flake8-8
zizmor,gitleaks,trivy,grype,syft,dive,tfsec,tflint,terrascan,kubeval,kubeconform,buildifier: @flake8-8
ktfmt,cppcheck,cpplint,cmake-format,stylua,luacheck,selene,hlint,ormolu,fourmolu,credo,dprint: @flake8-8
oxlint,knip,license-checker,publint,attw,size-limit,sloc: @flake8-8
tox,nox: -e= -p? -r -v -q -s= -l -k= -t= -m= -f= -R -c=! --parallel? --recreate --list --listenvs --sessions= --notest
  --skip-missing-interpreters --reuse-existing-virtualenvs --session= --env= --python= --no-install --version
  --list-sessions -a --develop --sitepackages --result-json=> -pall -pauto --stop-on-first-error --keywords= --tags=
  --tag= --installpkg= --skip-pkg-install :passes :runs
sphinx-build,sphinx-apidoc,sphinx-autobuild,sphinx-quickstart: -b= -W -E -a -n -q -T -N -M= -j= -d= -c= -f -o=> -e -P
  -v --keep-going -w=> --port= --host= --open-browser --watch= --ignore= --separate --module-first :runs
mkdocs build,serve,new,get-deps: -d= -f=! -s -c -v -q -a= --strict --site-dir= --clean --dev-addr= --config-file=!
  --dirty --livereload --no-livereload --verbose --quiet --theme= :runs
mike list: -b=
jupyter notebook,lab,nbconvert,kernelspec,labextension,--version,trust: --no-browser --port= --ip= --to= --execute
  --inplace! --output=> --output-dir= --allow-root --clear-output --stdout --no-input --template=
  --ExecutePreprocessor.timeout= :runs
uvicorn,gunicorn,hypercorn,daphne,waitress-serve,granian: -b= -w= -t= -p= -n= -k= -D --host= --port= --reload
  --workers= --bind= --timeout= --worker-class= --log-level= --access-logfile= --error-logfile= --factory --app-dir=
  --env-file= --threads= --reload-dir= --proxy-headers --root-path= --preload --max-requests= --graceful-timeout=
  --forwarded-allow-ips= --no-access-log --ssl-keyfile= --ssl-certfile= --keep-alive= --log-config= --interface=
  --listen= --call --daemon --pid=> :runs
flask run,routes,db,init-db,create-db,seed,test,translate,initdb: -h= -p= -m= -d= --host= --port= --debug --reload
  --no-reload --message= --with-threads --no-debugger --cert= :passes :runs
flask,quart: -A= -e= --app= --debug --env-file= --version
fastapi dev,run: --host= --port= --reload --workers= --no-reload --app= :runs
@django-admin-9: -l= -a --locale= --settings= --noinput --template=! --ignore= :runs
django-admin startproject,startapp,makemessages,compilemessages,check,migrate,makemigrations: @django-admin-9
django-admin test,version,collectstatic: @django-admin-9
celery: -A= -b= --app= --broker= --workdir=
celery worker,beat,flower,status,inspect,purge: -A= -l= -c= -Q= -B -P= -n= -E -S= -s= --app= --loglevel=
  --concurrency= --queues= --beat --pool= --hostname= --scheduler= --port= --address= --max-tasks-per-child= -f=
  --autoscale= -O= --without-gossip --without-mingle --time-limit= :runs
alembic upgrade,downgrade,revision,current,history,heads,init,stamp,check,merge,show,branches: -m= -t= -v
  --autogenerate --message= --sql --verbose --rev-id= --head= --splice --tag= -r= :runs
alembic: -c=! -n= -x= --config=! --name=
streamlit run,hello,version: --server.port= --server.address= --server.headless= --theme.base=
  --browser.gatherUsageStats= :passes :runs
gradio,chainlit,locust,kedro,torchrun,deepspeed,tensorboard,datasette: @ml
accelerate launch: @ml
accelerate config,env,test: --config_file=
@ml: --logdir= --port= --host= --bind_all --nproc_per_node= --nproc-per-node= --nnodes= --node_rank= --master_port=
  --master_addr= --standalone --config_file= --num_processes= --mixed_precision= --backend-store-uri=
  --default-artifact-root= --local-dir= --repo-type= --include= --exclude= --revision= --token= --select= -s= -m=
  --models= --target= --profiles-dir= --project-dir= --full-refresh --vars= -f= -u= -r= -t= -H= --headless --users=
  --spawn-rate= --run-time= --html= --csv= --web-port= -a= -o= -O= -w -h :stops :passes :runs
huggingface-cli,hf login,logout,whoami,download,upload,env,auth,cache,repo: --local-dir= --repo-type= --include=
  --exclude= --revision= --token= --quiet --local-dir-use-symlinks= --cache-dir=
@dbt-10: -s= -m= -t= -x --select= --models= --target= --profiles-dir= --project-dir= --full-refresh --exclude=
  --threads= --fail-fast --profile= --state= --defer --output= --resource-type= --no-partial-parse --warn-error
  --port= --no-browser :runs
dbt run,test,build,seed,compile,docs,deps,debug,snapshot,clean,ls,list,parse,source,init: @dbt-10
dbt run-operation,freshness: @dbt-10
dvc pull,push,repro,add,init,status,checkout,fetch,dag,metrics,params,exp,gc: -r= -f -v -j= --force --remote=
  --recursive -d --show --all :runs
cython,cythonize,pyinstaller,nuitka,maturin,cibuildwheel: -3 -i -a -f -j= -o= -n= -F -D -w -y --onefile --noconfirm
  --windowed --name= --icon= --add-data= --clean --release --inplace --force --annotate --output-dir= --platform=
  --distpath= --standalone -m -r --strip --hidden-import= --interpreter= --sdist --out= --features= :runs

mlflow ui,server: --port= --host= -p= -h= --backend-store-uri= --default-artifact-root=
wandb login,init,sync,offline,online,status: --relogin --host=
latexmk: -pdf -c -C -pvc -f -g -silent -quiet -interaction= -outdir= -output-directory= -xelatex :single :passes :runs
pdflatex,xelatex,bibtex,biber,makeindex: -interaction= -output-directory= -halt-on-error -synctex= :single :passes
convert,identify: -resize= -quality= -density= -background= -flatten -crop= -rotate= -strip -gravity= -extent=
  -format= :single :passes

# JavaScript
vue create,add,invoke,serve,build,ui,upgrade: --default --preset= -p= -d :runs
strapi develop,start,build,new,generate,export,import: --quickstart -f= --file= --watch-admin --no-run :runs
nest new,generate,g,start,build,info,add: --watch --debug -p= --package-manager= --skip-git --strict -w :runs
tsc,vue-tsc,tsgo: -p=! -b -w --noEmit --build --watch --project=! --outDir= --declaration --emitDeclarationOnly
  --strict --target= --module= --init --skipLibCheck --pretty --incremental --sourceMap --esModuleInterop --lib=
  --jsx= --version -v --outFile=> --rootDir= --allowJs --checkJs --listFiles --clean --force --verbose --diagnostics
  --extendedDiagnostics --moduleResolution= --declarationMap --showConfig --preserveWatchOutput --declarationDir=
  --removeComments --resolveJsonModule -d :runs
@eslint-11: -c=! -w! -l -f= -o=> -q -u --fix! --write! --check --ext= --config=! --cache --cache-location=
  --max-warnings= --quiet --format= --ignore-path= --ignore-pattern= --list-different --loglevel= --log-level=
  --no-error-on-unmatched-pattern --report-unused-disable-directives --single-quote --trailing-comma= --no-semi
  --print-width= --tab-width= --parser= --no-eslintrc --debug --output-file=> --color --no-color --cache-strategy=
  --fix-dry-run --apply! --apply-unsafe! --unsafe --verbose --no-config --prose-wrap= --unsafe! --changed --staged
  --no-warn-ignored --ignore-unknown --env= --rule= --no-ignore --init --flag= --stats --fix-type= --concurrency=
  --diagnostic-level= --since= --reporter= --allow-empty-input :runs
eslint,prettier,stylelint,biome,standard,xo,tslint,ts-standard,remark,textlint,htmlhint,jshint: @eslint-11
csslint,svgo,sort-package-json,oxfmt,rome: @eslint-11
@jest-12: -w -u -t= -i -b -c=! -f= -g= -R= -p= -v -s= -e= -o= --watch --watchAll? --watch-all? --run --coverage? --ci
  --updateSnapshot --update --testNamePattern= --testPathPattern= --testPathPatterns= --runInBand --maxWorkers=
  --verbose --silent? --bail? --passWithNoTests --detectOpenHandles --forceExit --no-cache --onlyChanged
  --findRelatedTests --config=! --json --collectCoverageFrom= --coverageReporters= --coverageDirectory= --env=
  --environment= --ui --reporter= --reporters= --globals --browser=<browser> --headed --headless --project= --spec=
  --grep= --recursive --timeout= --exit --extension= --check-leaks --single-run --browsers= --with-deps --debug
  --workers= --retries= --update-snapshots --shard= --list --all --check-coverage --lines= --port= --quiet --dir=
  --no-open --e2e --component --record --parallel --threads --no-threads --pool= --typecheck --selectProjects=
  --testTimeout= --logHeapUsage --colors --no-coverage --maxfail= --clearCache --showConfig --changedSince=
  --exit-zero-on-changes --only-changed --tags= --browser.headless --forbid-only --full-trace --sort --slow=
  --no-timeouts --isolate --no-isolate :runs
jest,vitest,mocha,ava,jasmine,uvu,karma,cypress,playwright,wdio,cucumber-js,qunit,chromatic: @jest-12
storybook,start-storybook,build-storybook,sb,web-test-runner,wtr,tape,nightwatch: @jest-12
@vite-13: -h -w -o= -y -D -O -v -g --watch --mode= --config=! --port= --host? --open --prod --production --development
  --configuration= --out= --outDir= --outdir= --outfile=> --output=> --output-dir= --output-path= --out-dir=
  --out-file=> --bundle --minify --sourcemap? --source-map? --target= --platform= --format= --external:= --loader:=
  --define:= --watch? --base= --force --emptyOutDir --ssr? --debug --no-cache --dist-dir= --public-url= --turbo
  --turbopack --verbose --quiet --silent --name= --schema= --skip-generate --create-only --accept-data-loss --help
  --version --env= --env-file= --compressed --style= --load-path= --no-source-map --extensions= --copy-files
  --presets= --ignore= --delete-dir-on-start --clean --cors -C --single --static --static= --buildDrafts --minify?
  --baseURL= --themesDir= --theme= --gc --cleanDestinationDir --destination= --source= --contentDir= --environment=
  --yes --upgrade --interactive --project= --region= --stage= --all --require-approval= --only= --non-interactive
  --token= --dir= --alias= --message= --local --remote --filter= --from= --to= --edit --network= --no-compile
  --gas-report --rpc-url= --fork-url= --fork --match-test= --match-contract= -vvv -vvvv -vv --release --dev --scope=
  --strict --input= --content= --postcss --purge --no-lint --experimental-app --types --dts --treeshake --splitting
  --global-name= --metafile? --analyze --legal-comments= --tree-shaking? --jsx= --packages= --main-fields=
  --log-level= --allow-overwrite --tsconfig=! --inline --no-progress --progress --stats --json --profile --stats-json
  --aot --no-aot --build-optimizer --named-chunks --serve --hot --no-hot --https --history-api-fallback
  --content-base= --user= --apiKey= --prebuilt --confirm --cwd= --web --ios --android --tunnel --lan --localhost
  --dev-client --channel= --branch= --auto-submit --skip-branding-plugins --glob --max-age= --spa --fallback= --app=
  --style --routing= --skip-tests --skip-git --standalone --inspect? --write! --check --package-manager=
  --experimental-https --experimental-build-mode= --hostname= --keepAliveTimeout= --yml --latest --overwrite --src-dir
  --no-git --template= --typescript --ts --js --tailwind --eslint --app --use-npm --use-yarn --use-pnpm :runs
vite,webpack,esbuild,parcel,next,nuxt,nuxi,astro,gatsby,ng,vue-cli-service,react-scripts,remix: @vite-13
svelte-kit,tsup,unbuild,rspack,rsbuild,snowpack,ember,nest,expo,react-native,electron-forge: @vite-13
capacitor,ionic,quasar,vuepress,vitepress,docusaurus,eleventy,@11ty+eleventy,hexo,gulp,grunt: @vite-13
babel,swc,sass,node-sass,postcss,tailwindcss,@tailwindcss+cli,lessc,uglifyjs,terser,tsc-alias: @vite-13
tsconfig-paths,typedoc,jsdoc,documentation,api-extractor,microbundle,ncc,@vercel+ncc: @vite-13
http-server,serve,live-server,json-server,rimraf,mkdirp,cpx,copyfiles,del-cli,cpy,npm-check,ncu: @vite-13
npm-check-updates,depcheck,madge,prisma,drizzle-kit,typeorm,knex,sequelize,sequelize-cli: @vite-13
mikro-orm,graphql-codegen,openapi-typescript,openapi-generator-cli,swagger-cli,@redocly+cli: @vite-13
relay-compiler,wrangler,vercel,serverless,sls,amplify,supabase,flyctl,fly,surge,shadcn: @vite-13
shadcn-ui,degit,tiged,commitlint,auto-changelog,conventional-changelog,all-contributors: @vite-13
pod-install,patch-package,syncpack,manypkg,expo-cli,eas,hardhat,truffle,ganache,forge,anvil: @vite-13
solc,sui,aptos,anchor,plop,hygen,yo,ts-prune,unimported,source-map-explorer: @vite-13
webpack-bundle-analyzer,webpack-dev-server,workbox,lighthouse,browserslist: @vite-13
update-browserslist-db,license-report,wasm-pack,trunk,wasm-bindgen,hugo,zola,gitbook,mdbook: @vite-13
antora,swagger,redoc-cli,elm,elm-test,elm-format,purs,spago,gleam,hexo-cli: @vite-13
@next-14: -p= -s -l= -a -d= --spa
next,nuxt,serve,http-server,live-server,json-server,vite,gatsby,astro,webpack-dev-server: @next-14
docusaurus,hexo,remix,nest,expo,storybook: @next-14
rollup: -c! -w -o=> -d= -f= --config?! --watch --format= --file=> --dir= --sourcemap? --silent
@prisma-15: -i= -u -n= -m= -d= -s= -g -c=!
prisma,ng,ncu,npm-check-updates,react-native,uglifyjs,terser,tailwindcss,@tailwindcss+cli,sass: @prisma-15
postcss,cpx,degit,eleventy,hugo,vuepress,firebase,expo,supabase,wrangler: @prisma-15
husky install,init::::::
changeset,@changesets+cli: :alone
changeset,@changesets+cli add,version,status,init: --empty --verbose
cdk synth,deploy,diff,bootstrap,list,ls,destroy,init,doctor: --all --require-approval= --profile= --context= -c=
  --force --language= --no-rollback --hotswap --region= --quiet -q :runs
tauri build,dev,info,init,icon: --target= --debug --bundles= --no-bundle --release :runs
netlify deploy,login,init,link,status,build,logout: --prod -p --dir= -d= --message= :runs
electron: --version :stops :passes :runs
electron-builder: -m -w -l --mac --win --linux --dir --publish= -p= --x64 --arm64 --universal :runs
lint-staged: --quiet --verbose :runs
@create-react-app-16: --template= --typescript --ts --js --javascript --tailwind --eslint --app --src-dir --no-src-dir
  --use-npm --use-yarn --use-pnpm --use-bun --import-alias= --example= -e= -y --yes --preset= --ci --no-git
  --no-install --skip-install --default --turbopack --no-eslint --no-tailwind --empty --force -t= --router --pinia
  --vitest --name= --manager= --style= --routing= --skip-git --strict --package-manager= --appId= --api -g :passes
create-react-app,create-next-app,create-vite,create-vue,create-svelte,create-remix: @create-react-app-16
create-expo-app,create-t3-app,create-astro,create-nuxt-app,create-strapi-app,create-turbo: @create-react-app-16
create-docusaurus,create-electron-app,create-hono,create-cloudflare,create-tauri-app: @create-react-app-16
create-rspack,create-rsbuild,create-nx-workspace,create-umi,create-cypress,create-storybook: @create-react-app-16
nuxi,@angular+cli,@vue+cli,@nestjs+cli,@capacitor+cli,@ionic+cli,expo-template,sv,tiged: @create-react-app-16
nodemon: -w= -e= -i= -q -L -V -d= --watch= --ext= --ignore= --quiet --inspect? --delay= --legacy-watch --config=!
  :stops :passes :runs
tsx,ts-node,ts-node-dev,ts-node-esm,babel-node,swc-node,esno,vite-node: -T -P=! --transpile-only --respawn --esm
  --files --project=! --tsconfig=! --env-file= --inspect? --exit-child --poll --no-warnings --swc :stops :passes :runs
@pm2-17: --name= --lines= --nostream --update-env -n= -i= --watch --env=
pm2 list,ls,stop,restart,reload,delete,del,logs,save,startup,monit,status,describe,flush,kill: @pm2-17
pm2 show,resurrect,update: @pm2-17
"""

VALUES = {
    "cargo": r"(?:run|test|check|build|clippy|fmt)(?: [\w./= -]*)?",
    "cmake": r"(?:CMAKE_(?:BUILD_TYPE|INSTALL_PREFIX|EXPORT_COMPILE_COMMANDS|PREFIX_PATH|CXX_STANDARD|C_STANDARD|"
    r"POSITION_INDEPENDENT_CODE|CUDA_ARCHITECTURES|OSX_ARCHITECTURES|OSX_DEPLOYMENT_TARGET|VERBOSE_MAKEFILE|"
    r"BUILD_WITH_INSTALL_RPATH|INSTALL_LIBDIR|UNITY_BUILD|INTERPROCEDURAL_OPTIMIZATION|BUILD_RPATH|INSTALL_RPATH|TOOLCHAIN_FILE)"
    r"(?::\w+)?=[\w./+:;~-]*|CMAKE_C(?:XX)?_COMPILER=(?:gcc|g\+\+|clang|clang\+\+)(?:-\d+)?|"
    r"CMAKE_C(?:XX)?_FLAGS=(?:-[OgDW][\w=+-]*|-f[\w=-]*|-std=[\w+]*| )*|"
    r"(?!CMAKE_|[A-Z_]*(?:COMPILER|LAUNCHER|COMMAND|EXECUTABLE|EXE|LINKER|RULE|WRAPPER|RUNNER|TOOL)\b)[\w.-]+(?::\w+)?"
    r"(?:=[\w.+-]*)?)",
    "file": r"(?!-$|/dev/|/proc/).+",
    "pymodule": r"pytest|unittest|nose2?|(?:src|app|tests?)(?:\.\w+)*",
    "warn": r"(?![lap],|plugin|use-ld|profile-use|rapper)[\w=+-]*",
    "property": r"(?!java\.|jdk\.|sun\.)[\w.-]+(?:=[\w./:,@-]*)?",
    "size": r"\w*",
    "ldflags": r"(?:-[sw]|-X[ =]'?[\w./-]+=[\w.:/@+-]*'?|-extldflags[ =][\"']?-static[\"']?|\s)*",
    "gcflags": r"(?:all=)?(?:-[NlmSB]|-c=\d+|\s)*",
    "maven": r"(?:skipTests|skipITs|maven\.(?:(?:test|javadoc|install|source)\.skip|test\.failure\.ignore)|"
    r"test|it\.test|tests|groups|revision|checkstyle\.skip|spotbugs\.skip|enforcer\.skip|jacoco\.skip|dockerfile\.skip|"
    r"failIfNoTests|surefire\.failIfNoSpecifiedTests|groupId|artifactId|version|package|archetypeArtifactId|"
    r"archetypeGroupId|archetypeVersion|interactiveMode|newVersion|spring-boot\.run\.profiles|gpg\.skip|rat\.skip|"
    r"license\.skip|exec\.mainClass|spotless\.check\.skip|outputDirectory|includes|excludes|debug)(?:=[\w.*#,+:-]*)?",
    "warnings": r"(?:ignore|default|error|once|always|module)(?:::?[\w.:]*)?",
    "plugin": r"no:[\w.]+|pytest_cov|xdist|pytest_asyncio|pytest_mock|pytest_timeout|randomly",
    "browser": r"chrome|chromium|firefox|webkit|edge|safari|electron|all",
    "ini": r"(?:log_cli|log_cli_level|log_level|cache_dir|markers|asyncio_mode|console_output_style|timeout|"
    r"xfail_strict|junit_family|addopts|log_file_level)=[\w.]*",
}
"""Harmless values of options whose other values may do harm."""
