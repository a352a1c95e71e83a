"""What a server answers, as a tool's outcome: content of every kind, as a result and as an error."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import types

from refold.modules.agent.chat.content import ContentAudioInput, ContentImageUrl, ContentText
from refold.modules.mcp.results import outcome_of, result_of

TEXT = types.TextContent(text="t")
IMAGE = types.ImageContent(data="aW1n", mime_type="image/png")
AUDIO = types.AudioContent(data="c25k", mime_type="audio/x-wav")
LINK = types.ResourceLink(uri="file:///a", name="a", title="A", description="an a")
BARE_LINK = types.ResourceLink(uri="file:///b", name="b")


def embedded(**members: Any) -> types.EmbeddedResource:
    kind = types.TextResourceContents if "text" in members else types.BlobResourceContents
    return types.EmbeddedResource(resource=kind(uri="file:///r", **members))


SHOWN = {
    "a text": (TEXT, "t"),
    "a link": (LINK, "[A: an a](file:///a)"),
    "a bare link": (BARE_LINK, "[b](file:///b)"),
    "a text of a resource": (embedded(text="inside", mime_type="text/plain"), "inside"),
    "bytes of a resource": (
        embedded(blob="AAAA", mime_type="application/zip"),
        "[application/zip of 3 bytes](file:///r)",
    ),
    "bytes of no kind": (embedded(blob="AAAAAAAA"), "[application/octet-stream of 6 bytes](file:///r)"),
}


@pytest.mark.parametrize(("block", "shown"), SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("is_error", [False, True])
def test_what_is_text_to_a_model(block: Any, shown: str, is_error: bool) -> None:
    message = outcome_of(types.CallToolResult(content=[block, TEXT], is_error=is_error)).message("c1")
    if is_error:
        assert message.metadata["error_type"] == "MCPToolError"
        assert message.metadata["error"] == f"{shown}\nt"
    else:
        assert message.content == f"{shown}\nt"


def test_pictures_and_sounds_are_parts_also_those_of_resources() -> None:
    picture = embedded(blob="aW1n", mime_type="image/png")
    message = outcome_of(types.CallToolResult(content=[TEXT, IMAGE, AUDIO, picture])).message("c1")
    assert not isinstance(message.body, str)
    text, image, audio, again = message.body
    assert isinstance(text, ContentText)
    assert isinstance(image, ContentImageUrl)
    assert isinstance(audio, ContentAudioInput)
    assert isinstance(again, ContentImageUrl)
    assert image.image_url.url == again.image_url.url == "data:image/png;base64,aW1n"
    assert (audio.input_audio.data, audio.input_audio.format) == ("c25k", "wav")
    told = outcome_of(types.CallToolResult(content=[TEXT, IMAGE], is_error=True)).message("c1")
    assert told.metadata["error_type"] == "MCPToolError"
    assert told.metadata["error"].startswith("t\n")


def test_structured_content_counts_where_there_is_no_other() -> None:
    document = {"a": [1, "é"]}
    only = outcome_of(types.CallToolResult(content=[], structured_content=document)).message("c1")
    assert json.loads(only.content) == document
    assert "é" in only.content
    both = outcome_of(types.CallToolResult(content=[TEXT], structured_content=document)).message("c1")
    assert both.content == "t"
    assert outcome_of(types.CallToolResult(content=[])).message("c1").content == ""


blocks = st.one_of(
    st.text(max_size=20).map(lambda text: types.TextContent(text=text)),
    st.just(IMAGE),
    st.just(AUDIO),
    st.text("ab", min_size=1, max_size=5).map(lambda url: embedded(blob="aW1n", mime_type=f"image/{url}")),
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(blocks, max_size=5), st.booleans())
def test_what_was_received_can_be_served_again_and_means_the_same(content: list[Any], is_error: bool) -> None:
    message = outcome_of(types.CallToolResult(content=content, is_error=is_error)).message("c1")
    served = result_of(message)
    assert served.is_error is is_error
    if not is_error:
        again = outcome_of(served).message("c1")
        assert again.body == message.body
        pictures = [block for block in served.content if isinstance(block, types.ImageContent)]
        wanted = [block for block in content if isinstance(block, types.ImageContent | types.EmbeddedResource)]
        assert len(pictures) == len(wanted)


def test_a_picture_at_an_address_is_served_as_its_address() -> None:
    from refold.modules.agent.chat.messages import Message

    served = result_of(Message("tool", [ContentImageUrl.from_url("https://h/a.png")], tool_call_id="c1"))
    assert served.content == [types.TextContent(text="https://h/a.png")]
