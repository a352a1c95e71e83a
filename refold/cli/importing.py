"""Imports the module that a run needs, and says in one line why it can't be."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from types import ModuleType
from typing import Any

from ..engine import AgentModule
from .failures import InputError, one_line

_AGENT = "refold.modules.agent.agent.Agent"
"""Told by its name: loading its module takes a while, and where there is one it is loaded."""


def load_module(path: str, why: str = "") -> AgentModule[Any]:
    """An instance of the class at `package.module:Class`, looked for in the current folder too.

    `why` says where the path comes from. Raises InputError where there is none, or importing it fails.
    """
    found = load_object(path, "CLASS", _offers, why)
    if isinstance(found, AgentModule):
        return found
    if any(f"{cls.__module__}.{cls.__name__}" == _AGENT for cls in type(found).__mro__):
        raise InputError(f"{path} is an Agent{why}; give it a goal with: refold agent --module {path} GOAL")
    if not isinstance(found, type) or not issubclass(found, AgentModule):
        name, _, qualname = path.partition(":")
        raise InputError(f"{path} is no AgentModule{why}; {_offers(sys.modules[name], qualname)}")
    module: AgentModule[Any] = made(found, path)
    return module


def is_module(path: str) -> bool:
    """Whether an AgentModule or a class of them is at `package.module:name`; raises InputError as `load_module`."""
    found = load_object(path, "CLASS", _offers)
    return isinstance(found, AgentModule) or (isinstance(found, type) and issubclass(found, AgentModule))


def load_object(path: str, noun: str, offers: Callable[[ModuleType, str], str], why: str = "") -> Any:
    """What is at `package.module:name`, looked for in the current folder too.

    `noun` is what stands behind the colon, `offers` tells what else a module has. Raises InputError as `load_module`.
    """
    name, colon, qualname = path.partition(":")
    if not colon or not name or not qualname:
        example = "mymodule:Agent, or name a task file" if noun == "CLASS" else "mymodule:name"
        raise InputError(f"{path!r} is no MODULE:{noun}{why}; write for example {example}")
    if name.endswith(".py"):
        raise InputError(
            f"{path!r} names a file{why}; write it as one imports it: {name[:-3].replace('/', '.')}:{qualname}"
        )
    if name == "__main__" or "<locals>" in qualname:
        raise InputError(f"{path!r} can't be imported{why}; move the class into a module, and name it with --module")
    found: Any = _import(name, why)
    for part in qualname.split("."):
        if not hasattr(found, part):
            raise InputError(f"{name} has no {qualname!r}{why}; {offers(sys.modules[name], qualname)}")
        found = getattr(found, part)
    return found


def made(make: Callable[[], Any], path: str) -> Any:
    """What a stranger's class or function gives without arguments; raises InputError where it raises."""
    try:
        return make()
    except Exception as error:  # whatever it raises is told in one line
        raise _failed(f"{path} can't be made without arguments", error) from error


def _import(name: str, why: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{name!r} is not a module's name{why}; write it as package.module, without a path or .py")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise InputError(
                f"there is no module {error.name!r}{why}, neither in {folder} nor installed; "
                "run refold in the folder it is in, or set PYTHONPATH"
            ) from error
        raise _failed(f"{name} can't be imported", error) from error
    except (Exception, SystemExit) as error:  # a stranger's code: whatever it raises is told in one line
        raise _failed(f"{name} can't be imported", error) from error


def _offers(module: ModuleType, wanted: str) -> str:
    classes = [
        each
        for each, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, AgentModule) and value is not AgentModule
    ]
    if not classes:
        return "it has no AgentModule: derive one from refold.AgentModule"
    near = get_close_matches(wanted, classes, 1)
    return f"did you mean {near[0]}?" if near else f"its AgentModules are {', '.join(sorted(classes))}"


def _failed(what: str, error: BaseException) -> InputError:
    said = error.msg if isinstance(error, SyntaxError) else error
    text = one_line(f"{type(error).__name__}: {said}")
    return InputError(f"{what}: {text}{_place(error)}; --traceback shows all of it", type(error).__name__)


def _place(error: BaseException) -> str:
    """The line of somebody's file where it went wrong: the last one outside of refold and the import machinery."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}:{error.lineno})"
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not _is_machinery(frame.f_globals.get("__name__", ""))
    ]
    return f" ({places[-1]})" if places else ""


def _is_machinery(module: str) -> bool:
    own = module.startswith("refold.") and not module.startswith("refold.modules.")
    return own or module.partition(".")[0] in (
        "importlib",
        "_frozen_importlib",
        "_frozen_importlib_external",
        "pydantic",
    )
