"""Whether Python code can be told to run no other program: it is read, never run."""

import ast

from .programs import words_of

_MODULES = words_of(
    """
    math cmath decimal fractions random statistics json re string textwrap datetime calendar time collections
    heapq bisect itertools functools operator dataclasses enum typing copy pprint hashlib hmac base64 binascii
    struct csv unicodedata difflib uuid secrets numbers array zlib colorsys graphlib keyword locale __future__
    """
)
_CALLED = words_of(
    """
    eval exec compile open __import__ getattr setattr delattr globals locals vars input breakpoint memoryview help
    __builtins__ __loader__ __spec__ __build_class__ type super object exit quit
    """
)
_MOST = 20_000


def doubt_of_python(code: str) -> str | None:
    """Why the code may run another program; None where it surely does not.

    It may use the parts of the standard library that compute, and nothing that leads from there to others: no names
    with two underscores, no attributes looked up by text, no files.
    """
    if len(code) > _MOST:
        return "the Python code is too long"
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "the Python code cannot be read"
    try:
        for node in ast.walk(tree):
            if (why := _doubt(node)) is not None:
                return f"the Python code {why}"
    except RecursionError:
        return "the Python code is nested too deeply"
    return None


def _doubt(node: ast.AST) -> str | None:
    match node:
        case ast.Import(names=names):
            bad = [alias.name for alias in names if alias.name not in _MODULES]
            return f"imports {bad[0]}" if bad else None
        case ast.ImportFrom(module=module, names=names):
            if module not in _MODULES:
                return f"imports from {module}"
            bad = [alias.name for alias in names if alias.name.startswith("_") or alias.name in ("*", "sys", "os")]
            return f"imports {bad[0]} from {module}" if bad else None
        case ast.Name(id=name) if name in _CALLED or (name.startswith("__") and name != "__name__"):
            return f"uses {name}"
        case ast.Attribute(attr=name) if name.startswith("_") or name in _ATTRIBUTES:
            return f"uses .{name}"
    return None


_ATTRIBUTES = words_of(
    """
    sys os subprocess builtins modules system popen spawn fork attrgetter methodcaller format_map mro gi_frame
    cr_frame f_globals f_builtins f_back tb_frame tb_next ag_frame func_globals namedtuple codecs io inspect
    importlib types
    """
)
"""Attributes through which the modules that are allowed lead to others."""
