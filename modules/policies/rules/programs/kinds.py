"""Readers of a command's arguments, by the kind of program.

The kinds are programs of the tables, unknown programs, built-ins, and shells.
"""

import re
from collections.abc import Sequence

from ..shell.plain_commands import Command, Kind, Reading, holds_commands, is_name
from ..shell.variables import steers
from ..shell.words import Word
from ..shell.written_files import SAFE_TARGETS
from .options import PLAIN, Arguments, Spec, read_arguments
from .word_lists import words_of

EVALUATE = words_of(
    """
    [ test printf read unset declare typeset local export readonly getopts wait kill
    """
)
"""Built-in commands that calculate with their arguments or take variables' names."""

_DECLARE = frozenset(["export", "declare", "typeset", "local", "readonly"])
_SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_CLUSTER = re.compile(r"-[lexuav]*c")
_HARMLESS_SHELL = re.compile(r"-[lexuav]+|-[lexuav]*o")
_SHELL_OPTIONS = frozenset(["pipefail", "errexit", "nounset", "xtrace"])


def by_table(spec: Spec) -> Kind:
    """Return the reader of arguments for a program of the tables."""

    def kind(reading: Reading, command: Command, is_fed: bool) -> None:
        found = read_arguments(spec, command.args, is_open=command.is_open)
        apply(reading, command, found, is_fed)

    return kind


def apply(reading: Reading, command: Command, found: Arguments, is_fed: bool) -> None:
    """Record the effects of a command's arguments."""
    args, marks = command.args, found.spec.marks
    command.unsure += found.unsure
    command.cautions |= found.cautions
    for word in found.written:
        if word.text not in SAFE_TARGETS and "runs" not in marks:
            reading.write(word)
    _check_git(command)
    _check_operands(reading, command, found)
    if "runs" in marks:
        reading.written.run(found.spec.name, marks["runs"])
    if "fed" in marks and is_fed:
        command.unsure.append((-1, f"what {found.spec.name} does with its input is not known"))
    for place in found.sets:
        name, _, value = args[place].prefix.partition("=")
        reading.set(name, Word(value if args[place].text is not None else None, value, args[place].many))
    if ("command" in marks or found.command is not None) and not found.unsure:
        _run(reading, command, found, is_fed)


def _run(reading: Reading, command: Command, found: Arguments, is_fed: bool) -> None:
    """Read the command that another command runs from its arguments."""
    args, name = command.args, command.program.casefold()
    if command.is_open or "open" in found.spec.marks:
        reading.stdin = None
    if found.command is None:
        if command.is_open:
            command.unsure.append((-1, f"{name} runs what it reads"))
        return
    words = list(args[found.command :])
    looks = any(word.text in ("-v", "-V") for word in args[: found.command])
    if name == "command" and looks:
        return
    if "joined" in found.spec.marks:
        texts = [word.text for word in words]
        if None in texts:
            command.unsure.append((-1, f"{name} gives a text to a shell that is known when it runs"))
        else:
            reading.source(" ".join(text or "" for text in texts), is_fed)
        return
    is_open = command.is_open or "open" in found.spec.marks
    if name == "xargs" and (mark := _placeholder(args[: found.command])) is not None:
        words, is_open = [_filled(word, mark, "") for word in words], False
    if name in ("npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "uvx", "pipx"):
        words[0] = _without_version(words[0])
    if found.spec.name == "yarn workspace":
        words.insert(0, Word("yarn", "yarn", raw="yarn"))
    elif name == "uv" and words[0].text is not None and words[0].text.endswith(".py"):
        words.insert(0, Word("python", "python", raw="python"))
    reading.command(words, is_fed, is_open=is_open)


def _placeholder(options: Sequence[Word]) -> str | None:
    """Return the mark that xargs replaces by its input, or None."""
    for place, word in enumerate(options):
        if (found := re.fullmatch(r"-[0rtx]*I(.*)", word.text or "", re.DOTALL)) is not None:
            return found[1] or (options[place + 1].text if place + 1 < len(options) else "") or ""
    return None


def _filled(word: Word, mark: str, start: str) -> Word:
    """Return a word with its mark replaced by an unknown name.

    The name is known only at run time; `start` is its known beginning.
    """
    text = word.text if word.text is not None else mark
    if mark not in text:
        return word
    return Word(None, text.split(mark, 1)[0] + start if mark else "", False, word.raw)


def _without_version(word: Word) -> Word:
    """Return the name of a package without its version."""
    found = re.fullmatch(r"((?:@[\w.-]+/)?[\w.-]+)@[\w.^~-]+", word.text or "")
    text = found[1] if found else word.text
    if text is not None and text.startswith("@"):
        text = text.replace("/", "+")  # as in the tables; with a slash it would be a file
    return Word(text, text, raw=word.raw) if text is not None else word


def _check_git(command: Command) -> None:
    if command.program.casefold() == "git":
        for place, word in enumerate(command.args):
            if "::" in word.prefix:
                command.unsure.append((place, "git may run a program to reach a repository"))


def _check_operands(reading: Reading, command: Command, found: Arguments) -> None:
    """Record the effects of a command's operands."""
    args, marks, name = command.args, found.spec.marks, found.spec.name
    operands = found.operands
    if found.spec.settings is not None:
        _check_setting(command, found)
    if "makes" in marks:
        _make(reading, command, found)
    if "out" in marks:
        for place in operands[int(marks["out"]) :]:
            if args[place].text not in SAFE_TARGETS:
                command.cautions.add(place)
                reading.write(args[place])
    if "passes" not in marks:
        return
    command.passes = True
    for place in operands:
        word = args[place]
        set_name, mark, value = word.prefix.partition("=")
        if "variables" in marks and mark:
            known = word.text is not None or (word.prefix != set_name + mark and not word.many)
            if steers(set_name, value if word.text is not None else None) or not known:
                command.unsure.append((place, f"{name} is told of {word.raw}, which may steer what it does"))
            elif not re.fullmatch(r"V|VERBOSE|DESTDIR|PREFIX|prefix|DEBUG", set_name):
                command.cautions.add(place)
        if word.text is None and not (word.many and is_name(word)):
            command.unsure.append((place, f"what {name} is given in {word.raw} is known when it runs"))
        elif word.text is not None and not PLAIN.fullmatch(word.text):
            command.unsure.append((place, f"what {name} does with {word.raw} is not known"))


def _check_setting(command: Command, found: Arguments) -> None:
    """Doubt a setting that is not in the tables.

    A command that only reads or removes a setting is not doubted.
    """
    words = [command.args[place] for place in found.operands]
    if words and words[0].text in ("get", "list", "unset", "set"):
        asked = words.pop(0).text != "set"
    else:
        asked = len(words) < 2 and "=" not in (words[0].text or "" if words else "")
    text = " ".join(word.text if word.text is not None else "\0" for word in words)
    known = found.spec.settings
    if not asked and (known is None or not known.fullmatch(text.replace("\0", "x") if len(words) > 1 else text)):
        command.unsure.append((found.operands[0], f"{found.spec.name} sets what may steer it"))


def _make(reading: Reading, command: Command, found: Arguments) -> None:
    """Record the files that a command makes from its operands."""
    args, name = command.args, command.program.casefold()
    words = [args[place] for place in found.operands]
    if command.is_open:
        reading.written.files.append(None)
    if name == "dd":
        words = [Word(w.text and w.text[3:], w.prefix[3:], raw=w.raw) for w in words if w.prefix.startswith("of=")]
    if found.spec.marks["makes"] == "last":
        reading.written.files += [word.text and word.text.rstrip("/").rsplit("/", 1)[-1] for word in words]
        named = any(word.prefix.startswith(("-t", "--t")) for word in args)
        words = list(args) if named else words[-1:]
    elif name not in ("dd", "wget", "link", "scp"):
        reading.written.files.append(None)
    for word in words:
        if "://" in word.prefix:
            reading.written.files.append(word.text and word.text.rstrip("/").rsplit("/", 1)[-1])
        elif word.text not in SAFE_TARGETS:
            reading.write(word)


def unknown(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read the arguments of a program that is in no table.

    The program may run anything that its arguments name.
    """
    if len(command.args) != 1 or command.args[0].text not in ("--version", "--help") or command.is_open:
        command.unsure.append((-1, f"what {command.program} runs is not known"))
    trusted(reading, command, is_fed)


def trusted(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read the arguments of a program that a rule allows by name.

    An argument that could be code is doubted.
    """
    command.passes = True
    if command.is_open or is_fed:
        command.unsure.append((-1, f"what {command.program} is given is known when it runs"))
    for place, word in enumerate(command.args):
        if word.text is None and not (word.many and is_name(word)):
            command.unsure.append((place, f"what {command.program} is given in {word.raw} is known when it runs"))
        elif word.text is not None and not PLAIN.fullmatch(word.text):
            command.unsure.append((place, f"what {command.program} does with {word.raw} is not known"))


def builtin(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read a built-in command that evaluates its arguments."""
    name, args = command.program.casefold(), command.args
    texts = {word.text for word in args}
    for word in args:
        if word.text is not None and holds_commands(word.text):
            reading.doubt(f"{name} may run the contents of {word.raw}")
        elif name == "printf" and word.prefix.startswith("-v"):
            reading.doubt("printf sets a variable that is known only at run time")
        elif name in _DECLARE and word.prefix.startswith(("-", "+")) and re.search("[inaA]", word.prefix[1:]):
            reading.doubt(f"{name} makes a variable of another kind")
        elif word.text is None and (name in ("unset", "read", "getopts") or {"-v", "-R"} & texts):
            reading.doubt(f"{name} may run the contents of {word.raw}")
        elif word.text is not None and name in _DECLARE and (found := _SETS.match(word.text)):
            reading.set(found[0][:-1], Word(word.text[found.end() :], ""))
        elif word.text is None and name in _DECLARE and (found := _SETS.match(word.prefix)):
            reading.set(found[0][:-1], Word(None, ""))
        elif name in _DECLARE and word.text is None:
            reading.doubt(f"{name} sets a variable that is known only at run time")


def go_to(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read `cd`.

    Programs may run files that the line then writes in the new folder.
    """
    for word in command.args:
        reading.go(word)


def shell(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read a shell, and the code after its `-c`.

    A shell that runs a file is doubted. Its stdin is read if known.
    """
    name, args = command.program, command.args
    texts = [word.text for word in args]
    if texts == ["--version"]:
        return
    if reading.stdin is not None and not command.is_open and texts in ([], ["-s"], ["-e"], ["-"]):
        reading.source(reading.stdin, False)
        return
    place = 0
    while place < len(texts) and _HARMLESS_SHELL.fullmatch(texts[place] or ""):
        takes = (texts[place] or "").endswith("o")
        if takes and (place + 1 >= len(texts) or texts[place + 1] not in _SHELL_OPTIONS):
            break
        place += 1 + takes
    if place >= len(texts) or not _CLUSTER.fullmatch(texts[place] or "") or command.is_open:
        reading.doubt(f"{name} runs a file, or its stdin")
        return
    code = args[place + 1] if place + 1 < len(args) else None
    if code is None or code.text is None or code.text.startswith(("-", "+")):
        reading.doubt(f"what {name} runs is known only at run time")
        return
    reading.source(code.text, is_fed)


def evaluated(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read `eval` or `trap`, and the text that it runs."""
    texts = [word.text for word in command.args]
    if None in texts or command.is_open:
        reading.doubt(f"what {command.program} runs is known only at run time")
        return
    known = [text or "" for text in texts]
    if command.program.casefold() == "eval":
        reading.source(" ".join(known), is_fed)
    elif len(known) > 1 and not known[0].startswith("-"):
        reading.source(known[0], is_fed)
    elif known:
        reading.doubt("a trap is set in an uncommon way")


_ACTIVATE = re.compile(r"(?:[\w./~-]*/)?\.?v?env[\w.-]*/bin/activate(?:\.\w+)?|(?:\./)?env/bin/activate", re.ASCII)


def sourced(reading: Reading, command: Command, is_fed: bool) -> None:
    """Read `source`, without its file.

    Only files that switch to an environment of Python are known; others are doubted.
    """
    if len(command.args) == 1 and _ACTIVATE.fullmatch(command.args[0].text or ""):
        reading.written.run("activate")
    else:
        reading.doubt(f"it is unknown what {command.program} runs")


def find(reading: Reading, command: Command, is_fed: bool, spec: Spec) -> None:
    """Read find, and the commands of `-exec` and similar options.

    The words of these commands are not find's own.
    """
    args, kept, places = command.args, [], []
    at, start = 0, _start(args)
    if len(args) > 1 and args[0].text is None and not args[0].many and args[1].prefix.startswith("-"):
        command.cautions.add(0)
        at = 1  # one word: a folder, or an option that starts nothing because it lacks a command
    while at < len(args):
        kept.append(args[at])
        places.append(at)
        if args[at].text in ("-exec", "-execdir", "-ok", "-okdir"):
            inner, at = _inner(args, at + 1, start)
            if inner:
                reading.command(inner, is_fed)
        else:
            at += 1
    found = read_arguments(spec, kept, is_open=command.is_open)
    command.unsure += [(places[place] if place >= 0 else -1, why) for place, why in found.unsure]
    command.cautions |= {places[place] for place in found.cautions}
    for word in found.written:
        reading.write(word)


def _start(args: Sequence[Word]) -> str:
    """Return the folder with which each found name begins.

    Returns "" unless find searches one known folder.
    """
    folders = [word for word in args[:2] if not word.prefix.startswith(("-", "(", "!"))]
    if not folders:
        return "."
    return folders[0].text or "" if len(folders) == 1 and args[0] is folders[0] else ""


def _inner(args: Sequence[Word], at: int, start: str) -> tuple[list[Word], int]:
    """Return the command at a position, and the position after it."""
    inner: list[Word] = []
    while at < len(args):
        each = args[at]
        at += 1
        if each.text == ";" or (each.text == "+" and inner and inner[-1].raw == "{}"):
            break
        inner.append(_filled(each, "{}", start))
    return inner, at
