"""What is known of programs: which do what they are told and no more, and which run others.

A program that is in none of these is taken to do no harm with arguments that are plain, and is doubted otherwise.
"""

import re


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


BARE = words_of(
    """
    [ : basename base64 bc break cat cd chgrp chmod chown cksum clear cmp column comm continue cp curl cut date df
    diff dirname dirs du echo egrep exit expand expr export factor false fgrep file fmt fold free getconf getopts
    grep groups head hexdump hostname id install jobs join jq kill ln local logname ls lsof md5sum mkdir mktemp mv
    nl nproc od paste pgrep pidof pkill popd pr printenv printf ps pushd pwd read readlink readonly realpath
    return rev rg rm rmdir seq set sha1sum sha256sum sha512sum shasum shift shred shuf sleep sort stat strings sum
    sync tac tail tee test times touch tr tree true truncate tsort tty type typeset declare ulimit umask uname
    unexpand uniq unlink unset uptime users wait wc wget whereis which who whoami xxd yes zcat gunzip gzip bzip2
    xz zstd unzip pathchk pbcopy
    """
)
"""Programs that only look at their arguments, or treat them as names, patterns and texts."""

UNLESS = {
    "sort": ("--c", "--fi"),
    "rg": ("--pre", "--hostname-bin"),
    "curl": ("-K", "--conf", "--engine"),
    "wget": ("-e", "--ex", "--use-ask", "--config"),
    "printf": ("-v",),
    "tree": ("--info",),
    "install": ("--strip-program",),
}
"""Beginnings of options with which they do more than that."""

EVALUATE = words_of(
    """
    [ test printf read unset declare typeset local export readonly getopts wait kill
    """
)
"""Built-in commands that calculate with their arguments, or take them as names of variables."""

WRITE = words_of(
    """
    tee cp mv ln install dd chmod curl wget rsync tar unzip patch
    """
)
"""Programs that make files, which what comes after them in the line may run."""

WRAPPERS = words_of(
    """
    builtin busybox caffeinate chrt command doas env exec ionice linux32 linux64 ltrace nice nocache nohup numactl
    parallel prlimit proot proxychains pseudo rlwrap setarch setsid stdbuf strace sudo taskset time timeout toybox
    torsocks tsocks unbuffer valgrind watch xargs xvfb-run chronic fakeroot gtime gtimeout catchsegv choom
    dbus-run-session firejail bwrap unshare setpriv
    """
)
"""Programs that run what their arguments say, as it is."""

JOIN = frozenset(["watch", "parallel"])
"""Those of them that give their arguments to a shell, as one text."""

START_SHELLS = words_of(
    """
    sudo doas unshare setpriv firejail bwrap fakeroot proot busybox
    """
)
"""Those of them that start a shell where no program is named."""

SHELLS = words_of(
    """
    sh bash dash ash zsh ksh ksh93 mksh pdksh posh yash rbash oksh
    """
)
OTHER_SHELLS = words_of(
    """
    fish csh tcsh rc es elvish nu xonsh pwsh powershell cmd scsh ion osh oil tclsh wish expect
    """
)

PYTHONS = re.compile(r"(python|pypy)[0-9.]*t?")
INTERPRETERS = re.compile(
    r"(perl|ruby|jruby|irb|node|nodejs|deno|bun|php|lua|luajit|guile|Rscript|R|julia|groovy|jshell|"
    r"elixir|iex|erl|ghci|runghc|ocaml|osascript|racket|sbcl|clisp|emacs|vim?|nvim|view|vimdiff|ex|ed|gdb|lldb|"
    r"sqlite3?|psql|mysql|mariadb|dc|m4|tclsh|octave|gnuplot|pry|rlua|ipython|"
    r"crystal|dotnet-script|csi|fsi|raku)[0-9.]*",
    re.IGNORECASE,
)
"""Programs that are languages, or have one: those whose text is not read here are doubted."""

VIEWERS = frozenset(["man", "less", "more", "most"])
"""Programs that show a file, and run others if an option says so."""

DOUBTED = words_of(
    """
    . source alias at batch bind compgen complete compopt coproc crontab dot ed enable fc hash history let mapfile
    readarray run-parts script screen shopt socat start-stop-daemon su runuser systemd-run tmux xdg-open open
    logout suspend disown bg fg atd anacron incrontab entr fzf inotifywait flock ssh-agent perf faketime sg cgexec
    runcon chroot nsenter softlimit hub yadm vcsh
    """
)
"""Programs whose effect is not told by their arguments."""

TRUSTED_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
TOOL_FOLDERS = re.compile(r"(\./)?(\.?venv|env|node_modules/\.|\.tox/[\w.-]+)/?(bin|Scripts)/([\w.-]+)")
"""Folders of a project in which its tools are installed; a program there is judged by its name."""

QUIET_PYTHON_MODULES = words_of(
    """
    pytest unittest mypy ruff black isort flake8 pylint json.tool venv ensurepip compileall tabnanny pip build
    coverage http.server zipfile tarfile sphinx twine pyright
    """
)
"""Modules that `python -m` runs without their running what their arguments say."""

COPY = frozenset(["cp", "mv", "ln", "install", "dd", "tee", "rsync", "curl", "wget"])
"""Programs that make files of the names that they are given."""

RUN_BY_OTHERS = re.compile(
    r"(?:.*/)?(?:\.git|\.husky|\.ssh|\.config|cron[\w.]*|profile\.d|systemd)/.*|/etc/.*|"
    r"(?:/|~|\$HOME|\$\{HOME\})(?:.*/)?s?bin(?:/.*)?|"
    r"(?:.*/)?\.(?:bash\w*|profile|zsh\w*|z?login|envrc|npmrc|git\w+|vimrc|netrc|pythonrc)",
    re.DOTALL,
)
"""Files that programs run, or that tell them what to run."""

NUMBERS = frozenset(["RANDOM", "SRANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SHLVL", "OPTIND"])
"""Variables that are numbers."""

SAFE_TARGETS = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/full"})

MODULE_PATHS = frozenset(["PYTHONPATH", "NODE_PATH", "CLASSPATH", "RUBYLIB", "PERL5LIB", "GOPATH"])
"""Variables that name folders with code that programs load."""

_QUIET = frozenset(
    [
        *(
            "PYTHONUNBUFFERED",
            "PYTHONDONTWRITEBYTECODE",
            "PYTHONHASHSEED",
            "PYTHONIOENCODING",
            "PYTHONUTF8",
            "NODE_ENV",
        ),
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_TERMINAL_PROMPT"),
        *("RUST_BACKTRACE", "RUST_LOG", "DOCKER_BUILDKIT", "XDG_RUNTIME_DIR"),
    ]
)
_VARIABLE = re.compile(
    r"(PATH|IFS|ENV|HOME|SHELL|PS[0-4]|PWD|OLDPWD|CDPATH|FPATH|BROWSER|VISUAL|.*(EDITOR|PAGER|SHELL|COMMAND|CMD|EXEC|"
    r"OPTS?|OPTIONS|FLAGS|HOOKS?|ASKPASS|WRAPPER|RSH|SSH|PRELOAD|STARTUP|PATH|OPEN|CLOSE|FILTER|PROGRAM|ARGS|HELPER|"
    r"CONF|CONFIG|RC|INIT|LOADER)|(PYTHON|PERL|RUBY|NODE|BASH|LESS|MAKE|JAVA|ZSH|KSH|LUA|PHP|TCL)[A-Z0-9_]*|"
    r"(LD|DYLD|GIT|NPM|MAN|GCC|CARGO|RUST|RUSTC|GCONV|R|SSH|SUDO|XDG|TMUX|DOCKER|POSIXLY|GO)_.*|BASH_FUNC.*|CC|CXX|LD|"
    r"AR|AS|RUSTC)",
    re.IGNORECASE,
)


def steers(name: str) -> bool:
    """Whether a variable of this name may make a program run something else."""
    return name not in _QUIET and _VARIABLE.fullmatch(name) is not None


GIT_COMMANDS = words_of(
    """
    add am apply archive blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format
    checkout checkout-index cherry cherry-pick clean clone commit commit-graph commit-tree count-objects describe
    diff diff-files diff-index diff-tree fetch fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id
    grep hash-object help init log ls-files ls-remote ls-tree mailinfo maintenance merge merge-base merge-file
    merge-tree mktag mktree mv name-rev notes pack-objects pack-refs patch-id prune pull push range-diff read-tree
    reflog remote repack replace request-pull rerere reset restore rev-list rev-parse revert rm send-email
    shortlog show show-branch show-ref sparse-checkout stage stash status stripspace switch symbolic-ref
    tag unpack-file unpack-objects update-index update-ref update-server-info upload-pack var verify-commit
    verify-pack verify-tag version whatchanged worktree write-tree receive-pack fast-export fast-import
    lfs rebase submodule config
    """
)
"""git's own commands, but for those that do what others do (`send-pack` pushes); any other may be an alias."""

OUTPUTS = re.compile(r"(?:.*/)?(?:[\w.-]+\.(?:log|txt|out|err|csv|tsv|md|html)|log)", re.ASCII)
"""Files that no program takes for code, unless it is told to."""
