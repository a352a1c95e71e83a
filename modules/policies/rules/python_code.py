"""Whether Python code can be told to run no other program: it is read, never run."""

import ast
from functools import lru_cache
from importlib import import_module
from types import ModuleType

from .programs import words_of

_MODULES = words_of(
    """
    math cmath decimal fractions random statistics json re string textwrap datetime calendar time collections heapq
    bisect itertools functools operator dataclasses enum copy pprint hashlib hmac base64 binascii struct csv unicodedata
    difflib secrets numbers array zlib colorsys __future__
    """
)
_NAMES = words_of(
    """
    eval exec compile open __import__ getattr setattr delattr globals locals vars input breakpoint memoryview help
    __builtins__ __loader__ __spec__ __build_class__ type super object exit quit
    """
)
_ATTRIBUTES = words_of(
    """
    sys os subprocess builtins bltns modules system popen spawn fork attrgetter methodcaller mro gi_frame cr_frame
    f_globals f_builtins f_back tb_frame tb_next ag_frame func_globals namedtuple make_dataclass codecs io inspect
    importlib types doctest get_type_hints get_field vformat Formatter abc warnings keyword tokenize
    """
)
"""Attributes through which the modules that are allowed lead to others, or that run a text."""
_MOST = 20_000


@lru_cache(maxsize=1)
def _leading_out() -> frozenset[str]:
    """The names under which the modules that are allowed hold others that are not."""
    found = set(_ATTRIBUTES)
    for name in _MODULES:
        for attribute, value in vars(import_module(name)).items():
            if isinstance(value, ModuleType) and value.__name__ not in _MODULES:
                found.add(attribute)
    return frozenset(found)


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
            bad = [alias.name for alias in names if alias.name == "*" or _leads_out(alias.name)]
            return f"imports {bad[0]} from {module}" if bad and module != "__future__" else None
        case ast.Name(id=name) if name in _NAMES or (name.startswith("__") and name != "__name__"):
            return f"uses {name}"
        case ast.Attribute(attr=name) if _leads_out(name):
            return f"uses .{name}"
        case ast.MatchClass(kwd_attrs=names) if names:
            return f"looks up {names[0]}"
        case _:
            return None


def _leads_out(name: str) -> bool:
    return name.startswith("_") or name in _leading_out()
