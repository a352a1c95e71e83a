"""Views of tools: some of them, under other names, or approved."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from difflib import get_close_matches
from typing import Any

from pydantic import PrivateAttr

from .as_tools import as_tools
from .schema import ToolDefinitionError
from .tool_class import Approve, Tool
from .toolset import Toolset

AnyTool = Tool[..., Any]


class ToolView(Toolset):
    """The tools of others, changed; made by the functions of this file.

    Toolsets in it are entered and exited with it, so a view may hold servers whose tools are known only then. A view is
    part of another view as any toolset is.
    """

    _items: list[Any] = PrivateAttr(default_factory=list)
    _change: Callable[[list[AnyTool]], list[AnyTool]] = PrivateAttr(default=list)
    _entered: AsyncExitStack = PrivateAttr(default_factory=AsyncExitStack)

    async def __aenter__(self) -> "ToolView":
        """Enter the toolsets."""
        async with AsyncExitStack() as stack:
            for item in self._items:
                if hasattr(type(item), "__aenter__") and hasattr(type(item), "__aexit__"):
                    await stack.enter_async_context(item)
            self._entered = stack.pop_all()
        return self

    async def __aexit__(self, *error: Any) -> None:
        """Exit the toolsets, the last one first."""
        await self._entered.__aexit__(*error)

    def get_tools(self, *, variant: str | None = None) -> list[AnyTool]:
        """Return the changed tools; a variant selects among those of toolsets."""
        found: list[AnyTool] = []
        for item in self._items:
            found += item.get_tools(variant=variant) if isinstance(item, Toolset) else as_tools(item)
        return self._change(found)


def only(tools: Any, *names: str) -> ToolView:
    """Return a toolset with the tools of these names alone.

    Reading its tools raises ToolDefinitionError for a name that no tool has.
    """
    return _view(tools, lambda found: [tool for tool in _known(found, names) if tool.name in names])


def without(tools: Any, *names: str) -> ToolView:
    """Return a toolset without the tools of these names.

    Reading its tools raises ToolDefinitionError for a name that no tool has.
    """
    return _view(tools, lambda found: [tool for tool in _known(found, names) if tool.name not in names])


def prefixed(tools: Any, namespace: str) -> ToolView:
    """Return a toolset whose tools models see as `namespace__name`."""

    def moved(tool: AnyTool) -> AnyTool:
        return tool.model_copy(update={"namespace": (namespace, *tool.namespace)})

    return _view(tools, lambda found: list(map(moved, found)))


def renamed(tools: Any, names: Mapping[str, str]) -> ToolView:
    """Return a toolset whose tools have new names, by their old ones.

    Reading its tools raises ToolDefinitionError for a name that no tool has.
    """

    def change(found: list[AnyTool]) -> list[AnyTool]:
        return [tool.with_(name=names[tool.name]) if tool.name in names else tool for tool in _known(found, names)]

    return _view(tools, change)


def approved(tools: Any, when: Approve = True) -> ToolView:
    """Return a toolset in which a person must approve calls: `approve=when`."""
    return _view(tools, lambda found: [tool.with_(approve=when) for tool in found])


def _view(tools: Any, change: Callable[[list[AnyTool]], list[AnyTool]]) -> ToolView:
    view = ToolView()
    view._items = list(tools) if isinstance(tools, list | tuple) else [tools]
    view._change = change
    return view


def _known(found: list[AnyTool], names: Iterable[str]) -> list[AnyTool]:
    """Return the tools.

    Raises ToolDefinitionError for a name that none of them has.
    """
    there = [tool.name for tool in found]
    for name in names:
        if name not in there:
            near = get_close_matches(name, there, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(there) or 'none'}"
            raise ToolDefinitionError(name, f"no tool has this name; {hint}")
    return found
