"""The standard tools by name, and what models are told of them; `agent_pages` compares them with their page."""

import inspect

import pytest

import refold.modules.tools as tools
from refold.modules.agent import Tool, Toolset
from refold.modules.tools import Memory, default_tools

LATER = {
    "read": {"file_path": inspect.Parameter.empty, "offset": 1, "limit": 2000},
    "write": {"file_path": inspect.Parameter.empty, "content": inspect.Parameter.empty},
}
"""Of tools that the page does not have."""


@pytest.mark.parametrize("name", LATER)
def test_tools_of_a_later_version_have_its_parameters(name: str) -> None:
    signature = inspect.signature(getattr(tools, name))
    assert {each.name: each.default for each in signature.parameters.values()} == LATER[name]


def test_every_error_of_a_standard_tool_is_told() -> None:
    for each in default_tools().values():
        assert all(tool.catch is True for tool in (each.get_tools() if isinstance(each, Toolset) else [each]))


def test_default_tools_are_all_of_them_by_name() -> None:
    found = default_tools()
    assert list(found) == [
        "read", "write", "glob", "grep", "ls", "edit_file", "multiedit", "delete_lines", "insert_lines", "apply_patch",
        "bash", "python", "fetch", "web_extract", "web_search", "report", "think", "todo", "ask_user", "confirm",
        "Memory",
    ]  # fmt: skip
    assert all(isinstance(each, Tool | Toolset) for each in found.values())
    assert default_tools()["Memory"] is not found["Memory"]

    class More(Toolset):
        pass

    assert isinstance(default_tools(additional_toolsets=[More()])["More"], More)
    with pytest.raises(ValueError, match="Memory"):
        default_tools(additional_toolsets=[Memory()])
    items = set(default_tools(include_items=True)) - set(found)
    assert items == {"report_item", "update_item", "link_items"}


def test_what_models_are_told_of_every_parameter() -> None:
    for each in default_tools().values():
        for tool in each.get_tools() if isinstance(each, Toolset) else [each]:
            assert tool.description, tool
            for name, schema in tool.parameters_schema["properties"].items():
                assert schema.get("description"), (tool.name, name)
