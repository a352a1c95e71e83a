"""A check that Python code only calculates and prints.

The code is parsed, never run. No list of the ways from Python to other programs could be complete. So the code may have
a few kinds of nodes only: numbers, texts, operators, loops, and calls of names and methods that are known to compute.
"""

import ast
import builtins
import re

from .word_lists import words_of

_MODULES = {
    "math": "pi e tau inf nan sqrt exp log log2 log10 sin cos tan asin acos atan atan2 floor ceil trunc factorial gcd "
    "lcm comb perm isqrt prod fsum hypot degrees radians pow isclose isnan isinf dist",
    "json": "dumps loads",
    "random": "random randint choice shuffle sample uniform seed randrange gauss",
    "statistics": "mean median mode stdev variance pstdev fmean",
    "datetime": "date datetime timedelta now today utcnow isoformat year month day days strftime total_seconds "
    "fromisoformat",
    "time": "time sleep monotonic perf_counter strftime",
    "collections": "Counter most_common",
    "itertools": "chain combinations permutations product count islice accumulate",
    "fractions": "Fraction",
    "decimal": "Decimal",
    "string": "ascii_letters digits ascii_lowercase ascii_uppercase punctuation",
    "secrets": "token_hex token_urlsafe token_bytes randbelow",
    "uuid": "uuid4 uuid1",
    "hashlib": "sha256 sha1 md5 sha512 hexdigest digest",
    "base64": "b64encode b64decode urlsafe_b64encode",
    "platform": "python_version machine platform",
    "sys": "version version_info executable maxsize byteorder path prefix stdin platform",
    "textwrap": "dedent fill",
    "re": "sub findall match search split escape",
}
"""Modules that may be imported, and their names that may be used."""

_METHODS = (
    "join split strip lstrip rstrip upper lower title capitalize replace startswith endswith count find index append "
    "extend insert pop sort reverse items keys values get add union intersection isdigit isalpha zfill ljust rjust "
    "center splitlines encode decode group groups major minor micro bit_length hex update copy real imag"
)
_ATTRIBUTES = frozenset(f"{_METHODS} {' '.join(_MODULES.values())} load".split())
_CALLED = words_of(
    """
    print len range sum min max abs round sorted reversed enumerate zip map filter list tuple dict set frozenset
    str int float bool complex repr ascii chr ord hex oct bin divmod pow any all isinstance bytes format hash
    iter next slice Counter Fraction Decimal date datetime timedelta
    """
)
_NODES = (
    *(ast.Module, ast.Expr, ast.Constant, ast.Name, ast.Load, ast.Store, ast.Assign, ast.AugAssign, ast.Pass),
    *(ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
    *(ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.comprehension, ast.Subscript, ast.Slice, ast.Starred, ast.keyword, ast.JoinedStr, ast.FormattedValue),
    *(ast.For, ast.While, ast.If, ast.Break, ast.Continue, ast.Assert, ast.alias),
)
_FORBIDDEN = (frozenset(dir(builtins)) | words_of("execfile file reload raw_input apply")) - _CALLED
"""Built-in names of Python, version 2 too, that are not known to compute."""
_FIELD_LOOKS_UP = re.compile(r"\{[^{}:!]*[.\[]")
_VERSION = re.compile(r"import (\w+); ?print\(\1\.__version__\)", re.ASCII)
"""Code that asks a module for its version.

It imports the module, as running a file of the project does.
"""
_MOST = 20_000


def doubt_of_python(code: str) -> str | None:
    """Return why the code may run another program, or None."""
    if _VERSION.fullmatch(code):
        return None
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
            bad = [each.name for each in names if each.name not in _MODULES or each.asname is not None]
            return f"imports {bad[0]}" if bad else None
        case ast.ImportFrom(module=module, names=names, level=0) if module in _MODULES:
            known = _MODULES[module].split()
            bad = [each.name for each in names if each.name not in known or each.asname is not None]
            return f"imports {bad[0]} from {module}" if bad else None
        case ast.Call(func=ast.Name(id=name)):
            return None if name in _CALLED | set(_ATTRIBUTES) else f"calls {name}"
        case ast.Call(func=ast.Attribute()):
            return None
        case ast.Call():
            return "calls a function that is known only at run time"
        case ast.Attribute(attr="format", value=value):
            plain = isinstance(value, ast.Constant) and not _FIELD_LOOKS_UP.search(str(value.value))
            return None if plain else "formats a text that is made when it runs"
        case ast.Attribute(attr=name):
            return None if name in _ATTRIBUTES else f"uses .{name}"
        case ast.Name(id=name) if name in _FORBIDDEN or (name.startswith("__") and name != "__name__"):
            return f"uses {name}"
        case ast.Name() | ast.alias():
            return None
        case _:
            return None if isinstance(node, _NODES) else f"holds {type(node).__name__}"
