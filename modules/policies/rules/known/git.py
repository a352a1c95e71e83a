"""git: its sub-commands, and their harmless options.

These options neither start a program nor say where a program is.
"""

TABLE = """
git: -C= -P -c=<git> --no-pager --git-dir= --work-tree= --namespace= --bare --no-optional-locks --literal-pathspecs
  --no-replace-objects --version -v --help -h -p --paginate :git

@diff: -p -u -s -# -U= --patch --no-patch --unified= --raw --minimal --patience --histogram --diff-algorithm= --stat?
  --compact-summary --numstat --shortstat --dirstat? --summary --patch-with-stat -z --name-only --name-status
  --submodule? --color? --no-color --color-moved? --word-diff? --word-diff-regex= --color-words? --no-renames --check
  --full-index --binary --abbrev? --no-abbrev -B? -M? -C? -D -l= -R -a -b -w -W -S= -G= --break-rewrites?
  --find-renames? --find-copies? --find-copies-harder --irreversible-delete --diff-filter= --pickaxe-all
  --pickaxe-regex --skip-to= --rotate-to= --relative? --no-relative --text --ignore-cr-at-eol --ignore-space-at-eol
  --ignore-space-change --ignore-all-space --ignore-blank-lines --inter-hunk-context= --function-context --exit-code
  --quiet -q --no-ext-diff --no-textconv --ignore-submodules? --src-prefix= --dst-prefix= --no-prefix --line-prefix=
  --output=> --indent-heuristic --no-indent-heuristic --ita-invisible-in-index --ws-error-highlight= -c --cc -m -t -r
@log: @diff -n= --max-count= --skip= --since= --after= --until= --before= --author= --committer= --grep= -i -E -F
  --regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --all-match --invert-grep --merges --no-merges
  --min-parents= --max-parents= --first-parent --not --all --branches? --tags? --remotes? --glob= --exclude= --reflog
  --stdin --cherry-pick --cherry-mark --cherry --left-right --left-only --right-only --boundary
  --simplify-by-decoration --simplify-merges --full-history --dense --sparse --ancestry-path? --date-order
  --author-date-order --topo-order --reverse --no-walk? --pretty? --format= --abbrev-commit --no-abbrev-commit
  --oneline --encoding= --expand-tabs? --no-expand-tabs --notes? --no-notes --relative-date --date= --parents
  --children --graph --no-graph --source -L= --decorate? --no-decorate --decorate-refs= --decorate-refs-exclude=
  --follow --log-size --mailmap --use-mailmap --walk-reflogs -g --count --full-diff --show-linear-break?
  --diff-merges=
git diff: @diff --cached --staged --merge-base --no-index --base --ours --theirs -0 -1 -2 -3
git diff-tree,diff-index,diff-files: @diff --cached --root --stdin -v --no-commit-id
git log,show,whatchanged,reflog: @log
git rev-list: @log --objects --disk-usage? --objects-edge --unpacked --use-bitmap-index
git shortlog: @log -s -e -w? --summary --numbered --email --group=
git range-diff: @diff --creation-factor= --no-dual-color --left-only --right-only
git format-patch: @diff -n -N -k --numbered --no-numbered --stdout --cover-letter --subject-prefix= --start-number=
  -o=> --output-directory=> --root --signoff -v= --zero-commit --base= --thread? --from? --to= --cc= --no-signature
git status,add,stage,rm,mv,branch,checkout,switch,restore,reset,clean,blame,annotate,describe,rev-parse,ls-files: *
git ls-tree,show-ref,show-branch,cherry,count-objects,fsck,gc,symbolic-ref,update-ref,update-index,worktree: *
git name-rev,for-each-ref,version,merge-base,merge-tree,read-tree,write-tree,commit-tree,check-ignore,check-attr: *
git check-ref-format,check-mailmap,stripspace,patch-id,pack-refs,pack-objects,prune,repack,replace,rerere: *
git update-server-info,verify-commit,verify-pack,verify-tag,sparse-checkout,mktag,mktree,hash-object,commit-graph: *
git fmt-merge-msg,get-tar-commit-id,mailinfo,maintenance,merge-file,notes,request-pull,unpack-file,var: *
git cat-file: -t -s -e -p --batch? --batch-check? --batch-all-objects --buffer --unordered --follow-symlinks
git tag: -a -l -d -n? -m= -F= -f -s -u= -i -v --list? --delete --annotate --sign --message= --file= --force --verify
  --sort= --contains --no-contains --merged --no-merged --points-at= --format= --cleanup= --color? --column?
  --no-column
git commit: -a -m= -F= -C= -c= -q -v -s -n -e -p -i -o -S? -u? -z --all --message= --file= --quiet --verbose --signoff
  --no-signoff --no-verify --amend --no-edit --edit --allow-empty --allow-empty-message --author= --date=
  --reuse-message= --reedit-message= --fixup= --squash= --reset-author --cleanup= --dry-run --short --branch
  --porcelain --long --only --include --patch --gpg-sign? --no-gpg-sign --no-post-rewrite --untracked-files? --status
  --no-status --pathspec-from-file=
git stash: @diff --keep-index --include-untracked -k -m= --message= --all --index -S :alone
git stash push,save: -p -k -u -a -m= -q -S --patch --keep-index --no-keep-index --include-untracked --all --message=
  --staged --quiet --pathspec-from-file=
git stash list,show: @log --include-untracked --only-untracked
git stash pop,apply,drop,clear,branch,create,store: --index -q --quiet -m= --message=
git fetch,pull: -v -q -a -f -t -n -j= -p -P -k -4 -6 -u --verbose --quiet --all --append --atomic --force --multiple
  --tags --no-tags --jobs= --prune --prune-tags --recurse-submodules? --no-recurse-submodules --dry-run --keep
  --update-head-ok --progress --no-progress --depth= --shallow-since= --shallow-exclude= --deepen= --unshallow
  --refetch --update-shallow --ipv4 --ipv6 --filter= --set-upstream --show-forced-updates --no-auto-gc --porcelain
git pull: -r? --rebase? --no-rebase --stat --no-stat --log? --signoff? --squash --no-squash --commit --no-commit
  --edit --no-edit --cleanup= --ff --no-ff --ff-only --verify --no-verify --autostash --no-autostash -X=
  --strategy-option= -S? --gpg-sign? --allow-unrelated-histories
git push: -v -q -d -n -f -u -4 -6 -o= --verbose --quiet --repo= --all --branches --mirror --delete --tags --dry-run
  --porcelain --force --force-with-lease? --force-if-includes --recurse-submodules= --thin --no-thin --set-upstream
  --progress --prune --no-verify --verify --follow-tags --signed? --atomic --push-option= --ipv4 --ipv6
git clone: -v -q -n -l -s -j= -o= -b= -4 -6 --verbose --quiet --progress --reject-shallow --no-checkout --bare
  --mirror --local --no-hardlinks --no-local --shared --recurse-submodules? --recursive? --jobs= --reference=
  --dissociate --reference-if-able= --origin= --branch= --depth= --shallow-since= --shallow-exclude= --single-branch
  --no-single-branch --no-tags --shallow-submodules --ipv4 --ipv6 --filter= --remote-submodules --sparse
git ls-remote: -h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --sort= --symref
git remote: -v --verbose :alone
git remote add: -t= -m= -f --tags --no-tags --mirror?
git remote show,prune,update,get-url,set-url,remove,rm,rename,set-branches,set-head: *
git merge: -m= -n -q -v -e -F= -X= -S? --stat --no-stat --log? --no-log --ff --no-ff --ff-only --squash --no-squash
  --commit --no-commit --edit --no-edit --abort --continue --quit --quiet --verbose --allow-unrelated-histories
  --strategy-option= --autostash --no-autostash --signoff --no-verify --gpg-sign? --into-name= --file= --cleanup=
git cherry-pick,revert: -n -x -e -s -m= -X= -S? --no-commit --edit --no-edit --signoff --mainline= --abort --continue
  --skip --quit --ff --allow-empty --keep-redundant-commits --strategy-option= --gpg-sign? --no-gpg-sign
git rebase: -q -v -n -f -m -S? -X= --onto= --continue --abort --skip --quit --quiet --verbose --autostash
  --no-autostash --autosquash --no-autosquash --root --fork-point --no-fork-point --rebase-merges? --keep-base --merge
  --signoff --no-verify --update-refs --committer-date-is-author-date --reapply-cherry-picks --keep-empty --empty=
  --strategy-option= --stat --no-stat --force-rebase --no-ff --ignore-whitespace --gpg-sign? --apply
git grep: -n -i -l -L -c -w -v -h -H -E -F -G -P -e= -f= -A= -B= -C= -# -I -a -q -o -p -r -W -z --cached --untracked
  --no-index --line-number --ignore-case --files-with-matches --files-without-match --name-only --count --word-regexp
  --invert-match --extended-regexp --fixed-strings --basic-regexp --perl-regexp --context= --after-context=
  --before-context= --and --or --not --all-match --color? --no-color --heading --break --show-function
  --function-context --max-depth= --recurse-submodules --column --only-matching --full-name --null --quiet --text
  --threads= --exclude-standard --no-exclude-standard --max-count= -m=
git init: -q -b= --quiet --initial-branch= --bare --object-format= --shared?
git submodule: -q --quiet
git submodule status,summary,init,deinit,sync,absorbgitdirs: *
git submodule add: -b= -f --branch= --force --name= --depth= -q --quiet
git submodule update: -f -N -j= --init --remote --recursive --force --checkout --merge --rebase --no-fetch --depth=
  --jobs= --recommend-shallow --single-branch --progress --no-single-branch --no-recommend-shallow -q --quiet
git submodule set-url,set-branch: -b= --branch= -d --default
git config: -l -z -f= --global --system --local --worktree --get --get-all --get-regexp --list --unset --unset-all
  --file= --type= --bool --int --path --show-origin --show-scope --name-only --null --default= --add --replace-all
  --remove-section --all :settings=git
git bisect start,good,bad,new,old,reset,skip,log,terms: --no-checkout --first-parent
git apply: -p= -R -3 -v -q -N --stat --numstat --summary --check --index --cached --3way --reverse --reject
  --whitespace= --directory= --exclude= --include= --verbose --recount --allow-empty :makes=0
git am: -s -k -3 -q -u --signoff --keep --3way --quiet --abort --continue --skip --resolved --quit --whitespace=
  --directory= --exclude= --include= --reject --no-verify --show-current-patch? :makes=0
git archive: -v -l --format= --prefix= -o=> --output=> --verbose --list --worktree-attributes --add-file= -# --mtime=
git bundle create,verify,list-heads,unbundle: -q --quiet --progress --all -# --branches --tags
git lfs install,pull,fetch,track,untrack,status,ls-files,checkout,version,env,locks,prune,uninstall,update: *
git help: -a -g -c --all --guides
git fast-export: --all --signed-tags= --tag-of-filtered-object= -M -C --no-data --anonymize
"""

VALUES = {
    "git": (
        r"(?:user\.(?:name|email|signingkey|useConfigOnly)|color\.\w+|advice\.\w+|core\.(?:quotepath|autocrlf|eol|filemode|"
        r"ignorecase|longpaths|safecrlf|symlinks|abbrev|compression|bigFileThreshold|fileMode|sparseCheckout|"
        r"commentChar|untrackedCache|preloadindex)|init\.defaultBranch|pull\.(?:rebase|ff)|push\.(?:default|"
        r"autoSetupRemote|followTags)|fetch\.(?:prune|parallel|pruneTags)|commit\.(?:gpgsign|verbose)|tag\.(?:gpgsign|sort)|"
        r"merge\.(?:conflictstyle|ff)|rerere\.\w+|rebase\.(?:autoStash|autoSquash)|branch\.(?:autosetuprebase|"
        r"autosetupmerge|sort)|branch\.[\w./-]+\.(?:remote|merge|rebase)|safe\.directory|log\.\w+|status\.\w+|help\.autocorrect|"
        r"http\.(?:postBuffer|lowSpeedLimit|lowSpeedTime|sslVerify|version)|pack\.\w+|gc\.(?:auto|autoDetach)|"
        r"diff\.(?:algorithm|renames|renameLimit|colorMoved|noprefix|mnemonicPrefix)|submodule\.(?:recurse|fetchJobs)|"
        r"column\.\w+|feature\.\w+|protocol\.version|index\.\w+|checkout\.\w+|format\.(?:pretty|signOff|subjectPrefix)|"
        r"blame\.(?:date|ignoreRevsFile)|stash\.\w+|transfer\.fsckObjects|versionsort\.suffix)(?:[ =][^!]*)?"
    )
}
"""Settings of git that choose no program, no other settings file and no remote host."""
