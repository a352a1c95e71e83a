"""Variables of a command line: harmless ones, and those that control programs.

A controlling variable may make a program run something else.
"""

import re

from ..known import programs
from ..programs.word_lists import words_of

HARMLESS = words_of(
    """
    CI DEBUG VERBOSE LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME TZ COLUMNS LINES NO_COLOR
    FORCE_COLOR CLICOLOR CLICOLOR_FORCE TERM COLORTERM NODE_ENV RAILS_ENV RACK_ENV APP_ENV FLASK_ENV MIX_ENV
    FLASK_DEBUG PORT HOST PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONIOENCODING PYTHONUTF8
    RUST_BACKTRACE RUST_LOG GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL
    GIT_COMMITTER_DATE GIT_TERMINAL_PROMPT DOCKER_BUILDKIT COMPOSE_DOCKER_CLI_BUILD CGO_ENABLED GOOS GOARCH
    GO111MODULE     CUDA_VISIBLE_DEVICES OMP_NUM_THREADS TOKENIZERS_PARALLELISM DEBIAN_FRONTEND SOURCE_DATE_EPOCH TF_LOG
    NEXT_TELEMETRY_DISABLED HUSKY MAKELEVEL TF_IN_AUTOMATION TF_INPUT CARGO_TERM_COLOR CARGO_INCREMENTAL
    GIT_LFS_SKIP_SMUDGE RAILS_LOG_TO_STDOUT
    """
)
"""Variables that change how a program shows or counts things.

They do not change what the program loads.
"""

_DATA = re.compile(
    r"(?:[A-Z0-9]+_)*(?:URL|URI|HOST|HOSTNAME|PORT|USER|USERNAME|PASSWORD|KEY|TOKEN|SECRET|NAME|ID|REGION|ENV|VERSION|"
    r"DIR|MODE|LEVEL|DEBUG|TIMEOUT|DATABASE|DB|PROFILE|ADDR|ADDRESS|BUCKET|TAG|DSN|EMAIL|PREFIX|DESTDIR|MESSAGE|MSG|"
    r"SETTINGS_MODULE|REGISTRY|REPO|REPOSITORY|ORG|OWNER|NAMESPACE|ARCH|PLATFORM|OS|APP|IMAGE|PROJECT|DATA|FILE|FILES|LIST|DATE|TIME|TITLE|OUTPUT|BRANCH|TARGET)"
)
"""Names that a project's programs give to their settings."""

_STEERING = re.compile(
    r"(PATH|IFS|ENV|HOME|SHELL|PS[0-4]|PWD|OLDPWD|CDPATH|FPATH|BROWSER|VISUAL|TMPDIR|.*(EDITOR|PAGER|SHELL|COMMAND|CMD|"
    r"EXEC|OPTS?|OPTIONS|FLAGS|HOOKS?|ASKPASS|WRAPPER|LAUNCHER|RSH|SSH|PRELOAD|STARTUP|PATH|OPEN|CLOSE|FILTER|PROGRAM|"
    r"ARGS|HELPER|CONF|CONFIG|CONFIG_FILE|RC|INIT|LOADER|PLUGINS?|COMPILER|LINKER|RUNNER|TOOLCHAIN|PROXY)|"
    r"(PYTHON|PERL|RUBY|NODE|BASH|LESS|MAKE|JAVA|ZSH|KSH|LUA|PHP|TCL|TERMINFO|DIFF)[A-Z0-9_]*|"
    r"(LD|DYLD|GIT|NPM|YARN|PNPM|MAN|GCC|CARGO|RUST|RUSTC|GCONV|R|SSH|SUDO|XDG|TMUX|DOCKER|POSIXLY|GO|PIP|UV|POETRY|"
    r"PYTEST|TOX|BUNDLE|GEM|TF|KUBE|KUBECTL|HELM|AWS|CURL|WGET|TAR|XZ|ZSTD|GZIP|RSYNC|SVN|HG|CMAKE|CTEST|NINJA|MAVEN|"
    r"GRADLE|JDK|GUILE|EMACS|VIM|OPENSSL|SYSTEMD|DBUS|GTK|QT|HIST|PROMPT|ANSIBLE|VAULT|SOPS|MDBOOK|PSQL|RAKE|DIRENV)_.*|"
    r"BASH_FUNC.*|CC|CXX|CPP|LD|AR|AS|RUSTC|DIFF|GIT.*|GO[A-Z]+|.*_PROXY|SSL_CERT_\w+|COMPOSE_FILE|FCEDIT|EXINIT|"
    r"VIMINIT|WGETRC|INPUTRC|ZDOTDIR|AWKPATH|AWKLIBPATH|NLSPATH|LOCPATH|SSLKEYLOGFILE|HOSTALIASES|HISTFILE)",
    re.IGNORECASE,
)
_LOCAL = re.compile(r"(?!npm_|ld_|dyld_)[a-z_][a-z0-9_]*(?<!_proxy)")
"""Names that scripts give to their own variables."""

_WORD = re.compile(r"[A-Za-z0-9_.+:@,%-]*", re.ASCII)
_COMPILERS = re.compile(r"(?:gcc|g\+\+|clang|clang\+\+|cc|c\+\+)(?:-[0-9.]+)?")
_PAGERS = ("", "cat", "less")

MODULE_PATHS = frozenset(["PYTHONPATH", "NODE_PATH", "CLASSPATH", "RUBYLIB", "PERL5LIB", "GOPATH"])
"""Variables that name folders with code that programs load."""

NUMBERS = frozenset(["RANDOM", "SRANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID", "SHLVL", "OPTIND"])
"""Variables that are numbers."""


def is_harmless(name: str) -> bool:
    """Return whether a variable is known to be harmless, whatever its value."""
    return name in HARMLESS or (_LOCAL.fullmatch(name) is not None and name != "_")


def steers(name: str, value: str | None) -> bool:
    """Return whether a variable may make a program run something else.

    A `value` of None is unknown. A variable with an unknown name is harmless if its value is a number, or a word that
    is not a program.
    """
    if is_harmless(name):
        return False
    if name.endswith("PAGER") and value in _PAGERS:
        return False
    if name in ("CC", "CXX") and value is not None and _COMPILERS.fullmatch(value):
        return False
    if _STEERING.fullmatch(name):
        return True
    if _DATA.fullmatch(name):
        return False
    return value is None or not _WORD.fullmatch(value) or value.casefold() in programs()
