"""What a shell command line runs: the commands that it surely runs, and what of it cannot be told."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from . import programs
from .programs import BARE, DOUBTED, EVALUATE, OTHER_SHELLS, SHELLS, UNLESS, WRAPPERS, WRITE, words_of
from .python_code import doubt_of_python
from .shell_lines import Simple, read_line
from .shell_words import Doubt, Word

_PLAIN = re.compile(r"[\w./:=@,+%~^-]*", re.ASCII)
_NUMBER = re.compile(r"[+-]?[0-9.]+[a-zA-Z]*%?")
_SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_TESTERS = words_of(
    """
    pytest mypy ruff black isort flake8 pylint pyright eslint prettier tsc jest vitest yq shellcheck
    """
)
_ORDINARY = re.compile(r"[\w\s./:=@,+%~^\"'*()\[\]\-]*", re.ASCII)
_SED = re.compile(
    r"(?:(?:\d+|\$|/[^/\n]*/)(?:,(?:\d+|\$|/[^/\n]*/))?)?(?:[pdq=]|s(?P<d>[/|,#:@])(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)"
    r"(?:(?!(?P=d))[^\n\\]|\\[^\n])*(?P=d)[gpiIm0-9]*)"
)
_HEAD = re.compile(r"[\w./+@:%^~-]+|\[", re.ASCII)
_SCRIPT = re.compile(r"[\w./][\w./-]*\.(m?js|cjs|ts|rb|pl|php|lua|R|jl)", re.ASCII)
_QUIET_SETTINGS = re.compile(
    r"(user\.(name|email)|color\.\w+|advice\.\w+|core\.quote[pP]ath|init\.defaultBranch)=[^!]*"
)
_CLUSTER = re.compile(r"-[lexuav]*c")


@dataclass(frozen=True, slots=True)
class Command:
    """A command that a line runs, or may run.

    `program` is its name without the folder. `is_open` says that more words may follow, `is_guess` that it stands in
    the arguments of a program that runs others, where it may be no command at all; `is_unknown` that nothing is known
    of the program.
    """

    program: str
    args: tuple[Word, ...]
    is_open: bool = False
    is_guess: bool = False
    is_unknown: bool = False
    writes: bool = False

    @property
    def is_written_out(self) -> bool:
        """Whether all of its words are known."""
        return not self.is_open and all(word.text is not None for word in self.args)

    def __str__(self) -> str:
        return " ".join([self.program, *(word.raw for word in self.args)])


@dataclass(slots=True)
class Line:
    """What a command line runs; `doubts` say what of it cannot be told, and why."""

    commands: list[Command] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


@lru_cache(maxsize=512)
def line_of(source: str, *, is_fed: bool = False, trusted: tuple[str, ...] = ()) -> Line:
    """Reads a command line; never raises.

    `is_fed` says that it is given something as its stdin; `trusted` are programs to be taken by their names, as they
    are written.
    """
    reading = _Reading(trusted)
    reading.source(source, is_fed)
    return reading.line


_Kind: TypeAlias = Callable[[str, Sequence[Word], bool, bool], None]


class _Reading:
    def __init__(self, trusted: tuple[str, ...]) -> None:
        self.line = Line()
        self._trusted = trusted
        self._depth = 0
        self._writes = False
        self._written: list[str | None] = []
        self._runs_files: list[str] = []

    def source(self, source: str, is_fed: bool) -> None:
        self._depth += 1
        try:
            found = read_line(source, is_fed=is_fed, depth=self._depth)
        except Doubt as doubt:
            self._doubt(str(doubt))
        else:
            for one in found:
                self._simple(one)
        self._depth -= 1
        if self._depth == 0 and self._runs_files and self._may_write_code():
            self._doubt(f"it may write what {self._runs_files[0]} then runs")

    def _may_write_code(self) -> bool:
        if self._writes or None in self._written:
            return True
        run = [name.rsplit("/", 1)[-1] for name in self._runs_files]
        names = [name for name in self._written if name is not None]
        return any(name.rsplit("/", 1)[-1] in run or not programs.OUTPUTS.fullmatch(name) for name in names)

    def _doubt(self, why: str) -> None:
        if why not in self.line.doubts:
            self.line.doubts.append(why)

    def _simple(self, one: Simple) -> None:
        for name, value in one.sets:
            self._set(name, value)
        writes = False
        for target in one.writes:
            if target.text not in programs.SAFE_TARGETS:
                writes = True
                self._written.append(target.text)
        if one.words:
            self._command(one.words, one.is_fed, writes=writes)
        elif writes:
            self.line.commands.append(Command("", (), writes=True))

    def _set(self, name: str, value: Word) -> None:
        if programs.steers(name):
            self._doubt(f"it sets {name}, which steers what programs do")
        if value.text is not None and _holds_commands(value.text):
            self._doubt(f"it keeps a command in {name}")

    # one command

    def _command(
        self, words: Sequence[Word], is_fed: bool, *, is_open: bool = False, guess: bool = False, writes: bool = False
    ) -> None:
        head = words[0]
        if head.text is None or head.many or not head.text:
            self._doubt(f"which program {head.raw or 'this'} is, is known when it runs")
            return
        if not _HEAD.fullmatch(head.text):
            self._doubt(f"{head.raw} is no name that a program has")
            return
        name = self._name(head.text)
        args = tuple(words[1:])
        kind = self._kind(name)
        unknown = kind is None
        self.line.commands.append(Command(name, args, is_open, guess, unknown, writes))
        in_place = name in ("sed", "gsed") and any(re.match(r"-\w*i|--in", word.prefix) for word in args)
        if name in WRITE or in_place:
            self._writes = True
        if kind is not None:
            kind(name, args, is_fed, is_open)
        else:
            self._unknown(name, args, is_fed, is_open)

    def _name(self, text: str) -> str:
        """A program's name without its folder; one in a folder of the agent's making is doubted."""
        name = text.rsplit("/", 1)[-1]
        name = name[:-4] if name.casefold().endswith(".exe") else name
        if "/" not in text or text in self._trusted:
            return name
        folder = text.rsplit("/", 1)[0]
        known = any(re.fullmatch(r"/+".join(["", *each.split("/")[1:]]), folder) for each in programs.TRUSTED_FOLDERS)
        if programs.TOOL_FOLDERS.fullmatch(text):
            self._runs_files.append(text)
        elif not known:
            self._doubt(f"what {text} does, its name does not tell")
        return name

    def _kind(self, name: str) -> "_Kind | None":
        low = name.casefold()
        if low in WRAPPERS:
            return self._wrapper
        if low in SHELLS:
            return self._shell
        if low in ("eval", "trap"):
            return self._evaluated
        if low in BARE:
            return self._bare
        if low == "find" or low == "gfind":
            return self._find
        if low == "git":
            return self._git
        if low in ("tar", "gtar", "bsdtar"):
            return self._tar
        if programs.PYTHONS.fullmatch(low):
            return self._python
        if re.fullmatch(r"[gmn]?awk", low):
            return self._awk
        if low in ("sed", "gsed"):
            return self._sed
        if low in OTHER_SHELLS or low in DOUBTED:
            return self._doubted
        if programs.INTERPRETERS.fullmatch(low):
            return self._interpreter
        return None

    def _unknown(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        allowed = _ORDINARY if name in _TESTERS else _PLAIN
        if is_fed and name not in _TESTERS:
            self._doubt(f"what {name} does with its input is not known")
        if is_open:
            self._doubt(f"what {name} is given is known when it runs")
        for word in args:
            if word.text is None and not (word.many and _is_name(word)):
                self._doubt(f"what {name} is given in {word.raw} is known when it runs")
            elif word.text is not None and not allowed.fullmatch(word.text):
                self._doubt(f"what {name} does with {word.raw} is not known")
        if name == "make":
            self._runs_files.append(name)

    # kinds of programs

    def _bare(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        options = UNLESS.get(name.casefold(), ())
        for word in args:
            bad = [each for each in options if word.prefix.startswith(each)]
            if bad or (options and word.text is None and not word.prefix):
                self._doubt(f"{name} may run a program with {word.raw}")
        if options and is_open:
            self._doubt(f"what {name} is given is known when it runs")
        if name in EVALUATE:
            for word in args:
                if word.text is not None and _holds_commands(word.text):
                    self._doubt(f"{name} may run what stands in {word.raw}")
                elif word.text is not None and (found := _SETS.match(word.text)):
                    self._set(found[0][:-1], Word(word.text[found.end() :], ""))
                elif word.text is None and (found := _SETS.match(word.prefix)):
                    self._set(found[0][:-1], Word(None, ""))
                elif name in ("export", "declare", "typeset", "local", "readonly") and word.text is None:
                    self._doubt(f"{name} sets what is known when it runs")

    def _wrapper(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        low = name.casefold()
        is_open = is_open or low in ("xargs", "parallel")
        after_option, begun = False, False
        if low in programs.JOIN and any(not _PLAIN.fullmatch(word.text or " ") for word in args):
            self._doubt(f"{name} gives a text to a shell")
        for place, word in enumerate(args):
            text = word.text
            if not begun or after_option:
                if text is None or word.many:
                    self._doubt(f"which program {name} runs is known when it runs")
                    return
                if text.startswith("-") and not begun:
                    if low in ("env", "busybox") and re.match(r"-\w*S|--split", text):
                        self._doubt(f"{name} takes a text apart")
                    if low in ("xargs", "parallel") and re.match(r"-[IiJ]|--repl", text):
                        self._doubt(f"{name} puts what it reads into a command")
                    after_option = "=" not in text and text != "--"
                    continue
                if _SETS.match(text) and not begun:
                    self._set(text.split("=", 1)[0], Word(text.split("=", 1)[1], ""))
                    continue
                if _NUMBER.fullmatch(text) and not begun:
                    after_option = False
                    continue
                self._command(args[place:], is_fed or low == "parallel", is_open=is_open, guess=True)
                begun = not after_option
                after_option = False
            else:
                self._guess(args[place:], is_open)
        if not begun and (low in programs.START_SHELLS or (is_open and low != "xargs")):
            self._doubt(f"{name} runs what it reads")
        if is_open and low == "xargs" and any(self._is_wrapper(word) for word in args):
            self._doubt(f"{name} runs what it reads")

    def _is_wrapper(self, word: Word) -> bool:
        return word.text is not None and word.text.rsplit("/", 1)[-1].casefold() in WRAPPERS

    def _guess(self, words: Sequence[Word], is_open: bool) -> None:
        """A command that may stand in the arguments of another: it counts if a rule denies it, and for nothing else."""
        head = words[0].text
        if head and not words[0].many:
            self.line.commands.append(Command(head.rsplit("/", 1)[-1], tuple(words[1:]), is_open, is_guess=True))

    def _shell(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        texts = [word.text for word in args]
        if texts == ["--version"]:
            return
        place = next((i for i, text in enumerate(texts) if text is None or not re.fullmatch(r"-[lexuav]+", text)), None)
        if place is None or not _CLUSTER.fullmatch(texts[place] or "") or is_open:
            self._doubt(f"{name} runs a file, or what it reads")
            return
        code = args[place + 1] if place + 1 < len(args) else None
        if code is None or code.text is None:
            self._doubt(f"what {name} runs is known when it runs")
            return
        self.source(code.text, is_fed)

    def _evaluated(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        if any(word.text is None for word in args) or is_open:
            self._doubt(f"what {name} runs is known when it runs")
            return
        texts = [word.text or "" for word in args]
        if name.casefold() == "eval":
            self.source(" ".join(texts), is_fed)
        elif len(texts) > 1 and not texts[0].startswith("-"):
            self.source(texts[0], is_fed)
        elif texts:
            self._doubt("a trap is set in an uncommon way")

    def _find(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        if is_open:
            self._doubt(f"what {name} is given is known when it runs")
        for place, word in enumerate(args):
            if word.text is None and not _is_name(word) and not word.raw.startswith('"'):
                self._doubt(f"what {name} is given in {word.raw} is known when it runs")
            if (word.text or "") in ("-exec", "-execdir", "-ok", "-okdir"):
                inner: list[Word] = []
                for each in args[place + 1 :]:
                    if each.text == ";" or (each.text == "+" and inner and inner[-1].raw == "{}"):
                        break
                    inner.append(Word(None, "", True, "{}") if "{}" in (each.text or "{}") else each)
                if inner:
                    self._command(inner, is_fed, guess=True)
            elif word.prefix.startswith("-fpr") or word.prefix.startswith("-fls"):
                self._writes = True

    def _git(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        command = None
        skip = False
        for place, word in enumerate(args):
            text = word.text
            if skip:
                skip = False
                continue
            if text is None or word.many:
                self._doubt("which command of git it is, is known when it runs")
                return
            if not text.startswith("-"):
                command, rest = text, args[place + 1 :]
                break
            setting = args[place + 1].text if text == "-c" and place + 1 < len(args) else None
            quiet = setting is not None and _QUIET_SETTINGS.fullmatch(setting)
            if text.startswith(("--config-env", "--exec-path", "-c")) and not quiet:
                self._doubt(f"git is steered by {text}")
            skip = text in ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source")
        if command is None:
            if is_open:
                self._doubt("which command of git it is, is known when it runs")
            return
        if command not in programs.GIT_COMMANDS:
            self._doubt(f"git {command} may be an alias")
        texts = [word.text or "" for word in rest]
        long = [text for text in texts if text.startswith("-")]
        runs = {
            "rebase": [t for t in long if t.startswith(("-x", "--ex", "-i", "--int", "--edit"))],
            "submodule": [t for t in texts if t == "foreach"],
            "config": [t for t in texts if not t.startswith("-")][1:] and [t for t in texts if _steers_git(t)],
            "grep": [t for t in long if t.startswith(("-O", "--open"))],
            "difftool": texts,
            "send-email": texts,
            "lfs": [t for t in texts if t not in ("ls-files", "status", "pull", "fetch", "track", "install")],
        }.get(command, [])
        runs += [
            t for t in long if t.startswith(("--upload-p", "--receive-p", "--exec", "--ext-d", "--textconv", "-u"))
        ]
        if command in ("add", "push", "commit", "branch", "stash", "status", "fetch", "diff", "log", "show"):
            runs = [t for t in runs if not t.startswith("-u")]
        if runs:
            self._doubt(f"git {command} may run a program with {runs[0]}")

    def _tar(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        if is_open:
            self._doubt(f"what {name} is given is known when it runs")
        for place, word in enumerate(args):
            begins = word.prefix
            long = begins.startswith(("--ch", "--to", "--us", "--rs", "--rm", "--in", "--ne", "--files"))
            cluster = re.match(r"-?[a-zA-Z]*[IFT]", begins) and (place == 0 or begins.startswith("-"))
            if long or (cluster and not begins.startswith("--")) or (word.text is None and not _is_name(word)):
                self._doubt(f"{name} may run a program with {word.raw}")

    def _python(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        rest = list(args)
        while rest and re.fullmatch(r"-[uBEIsSqO]+|-X|utf8|-W|ignore|default", rest[0].text or ""):
            rest.pop(0)
        first = rest[0].text if rest else None
        if first in ("--version", "-V", "--help") and len(rest) == 1:
            return
        if first == "-c" and len(rest) > 1 and rest[1].text is not None:
            why = doubt_of_python(rest[1].text)
            if why is not None:
                self._doubt(why)
        elif first == "-m" and len(rest) > 1 and rest[1].text in programs.QUIET_PYTHON_MODULES:
            self._unknown("pytest", rest[2:], is_fed, is_open)
        elif first is not None and not first.startswith(("-", "/dev", "/proc")) and not is_open and rest[0].is_plain:
            self._runs_files.append(first)
            self._unknown(name, rest[1:], False, is_open)
        else:
            self._doubt(f"what {name} runs cannot be told")

    def _awk(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        if is_open:
            self._doubt(f"what {name} is given is known when it runs")
        for word in args:
            text = word.text
            if (
                text is None
                and ((word.many and not _is_name(word)) or (not word.prefix and not word.raw.startswith('"')))
            ) or (text is None and "{" in word.raw):
                self._doubt(f"what {name} runs is known when it runs")
            elif text is not None and re.search(r"system|getline|[|@`]|^-[filEDS]|^--?[elfi]|>", text):
                self._doubt(f"{name} may run a program with {word.raw}")

    def _sed(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        if is_open:
            self._doubt(f"what {name} is given is known when it runs")
        scripts, plain = 0, False
        for place, word in enumerate(args):
            text = word.text
            follows = place > 0 and args[place - 1].text in ("-e", "--expression")
            if text is not None and re.fullmatch(r"-[nErsuz]*(e|i|i\.\w+)?|--(quiet|silent|regexp-extended)", text):
                plain = plain or text.endswith("e")
                continue
            if follows or (not scripts and not plain):
                scripts += 1
                parts = text.split(";") if text is not None else [""]
                if text is None or not (_SED.fullmatch(text) or all(_SED.fullmatch(each.strip()) for each in parts)):
                    self._doubt(f"what {name} does with {word.raw} is not known")
            elif word.prefix.startswith("-") or (text is None and not _is_name(word) and not word.raw.startswith('"')):
                self._doubt(f"what {name} does with {word.raw} is not known")

    def _interpreter(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        first = args[0] if args else None
        if first is not None and len(args) == 1 and first.text in ("--version", "-v", "-V", "--help"):
            return
        script = first is not None and first.is_plain and _SCRIPT.fullmatch(first.text or "")
        if not script or is_open or (first is not None and first.prefix.startswith(("/dev", "/proc"))):
            self._doubt(f"what {name} runs cannot be told")
            return
        self._runs_files.append(name)
        self._unknown(name, args[1:], False, is_open)

    def _doubted(self, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
        self._doubt(f"what {name} runs cannot be told")


def _holds_commands(text: str) -> bool:
    return "$(" in text or "`" in text or "${" in text


def _steers_git(text: str) -> bool:
    return (
        re.match(r"alias|core|pager|diff|merge|filter|credential|gpg|url|include|ssh|remote|sequence", text) is not None
    )


def _is_name(word: Word) -> bool:
    """Whether a pattern of file names is surely no option."""
    return bool(word.prefix) and not word.prefix.startswith("-") and "$" not in word.raw and "`" not in word.raw


def commands_text(commands: Iterable[Command]) -> str:
    """The commands, for messages."""
    return "; ".join(str(command) for command in commands)
