"""Programs that look at their arguments alone, those that run others, and shells."""

import re
from collections.abc import Sequence

from . import programs
from .programs import EVALUATE, UNLESS, WRAPPERS
from .reading import MOST_COMMANDS, Command, Reading, holds_commands, is_name
from .shell_words import Word

_PLAIN = re.compile(r"[\w./:=@,+%~^-]*", re.ASCII)
_NUMBER = re.compile(r"[+-]?\.?[0-9][0-9.]*[a-zA-Z]*%?")
_SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_DECLARE = frozenset(["export", "declare", "typeset", "local", "readonly"])
_CLUSTER = re.compile(r"-[lexuav]*c")


def bare(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A program that only looks at its arguments; some options, and variables, are more than that."""
    options = UNLESS.get(name.casefold(), ())
    for word in args:
        bad = [each for each in options if word.prefix.startswith(each)]
        if bad or (options and word.text is None and not word.prefix):
            reading.doubt(f"{name} may run a program with {word.raw}")
    if options and is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    if name in EVALUATE:
        texts = {word.text for word in args}
        for word in args:
            if word.text is not None and holds_commands(word.text):
                reading.doubt(f"{name} may run what stands in {word.raw}")
            elif name in _DECLARE and word.prefix.startswith(("-", "+")) and re.search("[inaA]", word.prefix[1:]):
                reading.doubt(f"{name} makes a variable of another kind")
            elif word.text is None and (name in ("unset", "read", "getopts") or {"-v", "-R"} & texts):
                reading.doubt(f"{name} may run what stands in {word.raw}")
            elif word.text is not None and (found := _SETS.match(word.text)):
                reading.set(found[0][:-1], Word(word.text[found.end() :], ""))
            elif word.text is None and (found := _SETS.match(word.prefix)):
                reading.set(found[0][:-1], Word(None, ""))
            elif name in _DECLARE and word.text is None:
                reading.doubt(f"{name} sets what is known when it runs")


_VALUED = {
    "xargs": ("-a", "-d", "-E", "-L", "-n", "-P", "-s", "--arg-file", "--delimiter", "--max-args", "--max-procs"),
    "timeout": ("-s", "-k", "--signal", "--kill-after"),
    "nice": ("-n",),
    "env": ("-u", "-C", "--unset", "--chdir"),
    "sudo": ("-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U"),
}
"""Options that surely have a value."""


def wrapper(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A program that runs what its arguments say: options, their values and settings come before it.

    Whether an option has a value is not known, so both readings count.
    """
    low = name.casefold()
    is_open = is_open or low in ("xargs", "parallel")
    after_option, begun = False, False
    if low in programs.JOIN and any(not _PLAIN.fullmatch(word.text or " ") for word in args):
        reading.doubt(f"{name} gives a text to a shell")
    if is_open:
        reading.stdin = None
    valued = False
    for place, word in enumerate(args):
        text = word.text
        if valued:
            valued = False
            continue
        if not begun or after_option:
            if text is None or word.many:
                reading.doubt(f"which program {name} runs is known when it runs")
                return
            if text.startswith("-") and not begun:
                if low in ("env", "busybox") and re.match(r"-\w*S|--split", text):
                    reading.doubt(f"{name} takes a text apart")
                if low in ("xargs", "parallel") and re.match(r"-[IiJ]|--repl", text):
                    reading.doubt(f"{name} puts what it reads into a command")
                valued = text in _VALUED.get(low, ())
                after_option = "=" not in text and text != "--" and not valued
                continue
            if _SETS.match(text) and not begun:
                reading.set(text.split("=", 1)[0], Word(text.split("=", 1)[1], ""))
                continue
            if _NUMBER.fullmatch(text) and not begun:
                after_option = False
                continue
            reading.command(args[place:], is_fed or low == "parallel", is_open=is_open)
            begun = not after_option
            after_option = False
        else:
            _guess(reading, args[place:], is_open)
    if not begun and (low in programs.START_SHELLS or (is_open and low != "xargs")):
        reading.doubt(f"{name} runs what it reads")
    if is_open and low == "xargs" and any(_is_wrapper(word) for word in args):
        reading.doubt(f"{name} runs what it reads")


def _is_wrapper(word: Word) -> bool:
    return word.text is not None and word.text.rsplit("/", 1)[-1].casefold() in WRAPPERS


def _guess(reading: Reading, words: Sequence[Word], is_open: bool) -> None:
    """A command that may stand in the arguments of another: it counts if a rule denies it, and for nothing else."""
    head = words[0].text
    if len(reading.line.commands) >= MOST_COMMANDS:
        reading.doubt("it has too many words")
    elif head and not words[0].many:
        reading.line.commands.append(Command(head.rsplit("/", 1)[-1], tuple(words[1:]), is_open, is_guess=True))


def shell(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A shell: the text behind `-c` is read; files and stdin are not."""
    texts = [word.text for word in args]
    if texts == ["--version"]:
        return
    if reading.stdin is not None and not is_open and texts in ([], ["-s"], ["-e"], ["-"]):
        reading.source(reading.stdin, False)
        return
    place = next((i for i, text in enumerate(texts) if text is None or not re.fullmatch(r"-[lexuav]+", text)), None)
    if place is None or not _CLUSTER.fullmatch(texts[place] or "") or is_open:
        reading.doubt(f"{name} runs a file, or what it reads")
        return
    code = args[place + 1] if place + 1 < len(args) else None
    if code is None or code.text is None or code.text.startswith(("-", "+")):
        reading.doubt(f"what {name} runs is known when it runs")
        return
    reading.source(code.text, is_fed)


def evaluated(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """`eval` and `trap`, whose text is read."""
    if any(word.text is None for word in args) or is_open:
        reading.doubt(f"what {name} runs is known when it runs")
        return
    texts = [word.text or "" for word in args]
    if name.casefold() == "eval":
        reading.source(" ".join(texts), is_fed)
    elif len(texts) > 1 and not texts[0].startswith("-"):
        reading.source(texts[0], is_fed)
    elif texts:
        reading.doubt("a trap is set in an uncommon way")


def find(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """find: what `-exec` and its like run."""
    if is_open:
        reading.doubt(f"what {name} is given is known when it runs")
    for place, word in enumerate(args):
        following = args[place + 1].prefix if place + 1 < len(args) else "-"
        is_folder = place == 0 and not word.many and following.startswith("-")
        if word.text is None and not is_name(word) and not is_folder:
            reading.doubt(f"what {name} is given in {word.raw} is known when it runs")
        if (word.text or "") in ("-exec", "-execdir", "-ok", "-okdir"):
            inner: list[Word] = []
            for each in args[place + 1 :]:
                if each.text == ";" or (each.text == "+" and inner and inner[-1].raw == "{}"):
                    break
                inner.append(Word(None, "", True, "{}") if "{}" in (each.text or "{}") else each)
            if inner:
                reading.command(inner, is_fed)
        elif word.prefix.startswith("-fpr") or word.prefix.startswith("-fls"):
            reading.writes = True


def viewer(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A program that shows files; with options it may do more."""
    for word in args:
        if is_open or not word.prefix or word.prefix.startswith(("-", "+")):
            reading.doubt(f"{name} may run a program with {word.raw}")


def doubted(reading: Reading, name: str, args: Sequence[Word], is_fed: bool, is_open: bool) -> None:
    """A program whose effect its arguments do not tell."""
    reading.doubt(f"what {name} runs cannot be told")
