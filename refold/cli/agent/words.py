"""Which words of an answer can be shown while it comes, where calls are written in the text itself; pure."""

import re

_CALLS = {"json": r"[{`]|\[(?=\s*\{|$)", "pythonic": r"\[|`"}
_TAGS = r"<(?=[A-Za-z_/!|]|$)"


def sure_words(text: str, mode: str) -> str:
    """The beginning of an answer that is words whatever comes next: up to what a call of this tool mode begins with."""
    if mode == "api":
        return text
    found = re.search(_CALLS.get(mode, _TAGS), text)
    return text if found is None else text[: found.start()]


def rest_of(content: str, shown: str) -> str:
    """What is left to show of an answer's words, once it is known which they are; all of them where none were shown."""
    content = content.strip()
    if not shown:
        return content
    for said in (shown, shown.rstrip()):
        if content.startswith(said):
            return content[len(said) :]
    return ""
