"""Texts for models from a function's docstring."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any


def target_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function behind a partial or callable object.

    That function has the annotations and the docstring.
    """
    while isinstance(fn, partial):
        fn = fn.func
    if inspect.isroutine(fn) or inspect.isclass(fn):
        return fn
    called: Callable[..., Any] = type(fn).__call__
    return called


def description_of(fn: Callable[..., Any]) -> str:
    """Return the dedented docstring, or an empty text."""
    behind = target_of(fn)
    text = inspect.getdoc(behind) or ""
    if not inspect.isroutine(fn) and not isinstance(fn, partial) and not inspect.isclass(fn):
        text = text or inspect.getdoc(type(fn)) or ""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def parameter_texts(fn: Callable[..., Any]) -> dict[str, str]:
    """Return the docstring's texts on parameters, by name.

    Google's, numpydoc's, reST's and epydoc's styles are understood.
    """
    text = inspect.getdoc(target_of(fn))
    if not text or not any(sign in text for sign in ("Args", "Arg:", "Param", "param", "Keyword", "@")):
        return {}
    from docstring_parser import ParseError, parse

    try:
        parsed = parse(text)
    except ParseError:
        return {}
    return {p.arg_name.lstrip("*"): " ".join(p.description.split()) for p in parsed.params if p.description}
