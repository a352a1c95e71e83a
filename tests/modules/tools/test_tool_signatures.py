"""The names of the standard tools are there, with the parameters, defaults and results that their page states."""

import inspect
from typing import Any

import pytest

import refold.modules.tools as tools
from refold.modules.agent import Tool, Toolset
from refold.modules.tools import Memory, default_tools

REQUIRED = inspect.Parameter.empty
PAGE: dict[str, tuple[dict[str, Any], str]] = {
    "ask_user": (
        {"question": "", "options": None, "kind": None, "details": None, "allow_free_text": None,
         "default_option": None, "severity": None, "request_id": None, "source_tool_name": None,
         "source_tool_call_id": None}, "str"),
    "bash": ({"cmd": REQUIRED, "timeout": 120, "cwd": None, "env": None, "input": None}, "str"),
    "confirm": ({"action": REQUIRED, "default_yes": False}, "bool"),
    "delete_lines": ({"path": REQUIRED, "start_line": REQUIRED, "end_line": REQUIRED, "cwd": None}, "str"),
    "edit_file": (
        {"path": REQUIRED, "old_string": REQUIRED, "new_string": REQUIRED, "replace_all": False, "cwd": None}, "str"),
    "insert_lines": ({"path": REQUIRED, "line_number": REQUIRED, "content": REQUIRED, "cwd": None}, "str"),
    "multiedit": ({"path": REQUIRED, "edits": REQUIRED, "cwd": None}, "str"),
    "python": ({"code": REQUIRED, "timeout": 120, "cwd": None, "env": None}, "str"),
    "read": ({"file_path": REQUIRED, "offset": 1, "limit": 2000}, "Any"),
    "write": ({"file_path": REQUIRED, "content": REQUIRED}, "str"),
}  # fmt: skip
KEYWORD_ONLY = {
    "ask_user": {"kind", "details", "allow_free_text", "default_option", "severity", "request_id", "source_tool_name",
                 "source_tool_call_id"},
    "bash": {"timeout", "cwd", "env", "input"},
    "confirm": {"default_yes"},
    "delete_lines": {"cwd"},
    "edit_file": {"replace_all", "cwd"},
    "insert_lines": {"cwd"},
    "multiedit": {"cwd"},
    "python": {"timeout", "cwd", "env"},
}  # fmt: skip
MEMORY: dict[str, tuple[dict[str, Any], Any]] = {
    "clear_memory": ({"key": None}, str),
    "list_memory_keys": ({}, list[str]),
    "retrieve_memory": ({"key": REQUIRED}, str),
    "save_memory": ({"key": REQUIRED, "value": REQUIRED}, str),
}


@pytest.mark.parametrize("name", PAGE)
def test_each_tool_has_the_parameters_of_its_page(name: str) -> None:
    tool = getattr(tools, name)
    assert isinstance(tool, Tool)
    assert tool.name == name
    assert tool.catch is True
    signature = inspect.signature(tool)
    wanted, result = PAGE[name]
    found = {each.name: each.default for each in signature.parameters.values()}
    assert {each: found[each] for each in wanted} == wanted
    assert set(found) - set(wanted) <= {"questions"}, "what a later version added may stand beside"
    only = {each.name for each in signature.parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY}
    assert only - {"questions"} == KEYWORD_ONLY.get(name, set())
    assert getattr(signature.return_annotation, "__name__", str(signature.return_annotation)) == result


@pytest.mark.parametrize("name", MEMORY)
def test_memory_has_the_methods_of_its_page(name: str) -> None:
    tool = next(each for each in Memory().get_tools() if each.name == name)
    signature = inspect.signature(tool)
    wanted, result = MEMORY[name]
    assert {each.name: each.default for each in signature.parameters.values()} == wanted
    assert signature.return_annotation == result


def test_default_tools_are_all_of_them_by_name() -> None:
    found = default_tools()
    assert list(found) == [
        "read", "write", "glob", "grep", "ls", "edit_file", "multiedit", "delete_lines", "insert_lines", "apply_patch",
        "bash", "python", "fetch", "think", "todo", "ask_user", "confirm", "Memory",
    ]  # fmt: skip
    assert all(isinstance(each, Tool | Toolset) for each in found.values())
    assert default_tools()["Memory"] is not found["Memory"]

    class More(Toolset):
        pass

    assert isinstance(default_tools(additional_toolsets=[More()])["More"], More)
    with pytest.raises(ValueError, match="Memory"):
        default_tools(additional_toolsets=[Memory()])
    with pytest.raises(ValueError, match="platform"):
        default_tools(include_items=True)


def test_what_models_are_told_of_every_parameter() -> None:
    for each in default_tools().values():
        for tool in each.get_tools() if isinstance(each, Toolset) else [each]:
            assert tool.description, tool
            for name, schema in tool.parameters_schema["properties"].items():
                assert schema.get("description"), (tool.name, name)


def test_every_public_name_is_there() -> None:
    assert [name for name in tools.__all__ if not hasattr(tools, name)] == []
