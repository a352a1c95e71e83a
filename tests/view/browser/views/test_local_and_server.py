"""The exported file and the server answer the same: both are asked the same questions about the same runs."""

import gzip
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from view_pages import Look, Site

from refold.view.packed import pack

ASKED = Path(__file__).with_name("ask_both.js").read_text("utf-8")


@pytest.mark.parametrize(
    ("name", "words"),
    [("links", ["SECTION", "broken", "3"]), ("research", ["parser", "the"]), ("waiting", ["pay"]), ("search", ["3"])],
)
def test_both_answer_the_same(looking: Look, site: Site, name: str, words: list[str]) -> None:
    path = site.folder / f"{site.ids[name]}.trace.jsonl"
    packed = b64encode(gzip.compress(b"".join(pack([path], with_family=True)))).decode()
    page = looking(site.at("states"), refused=True)
    answer: dict[str, Any] = page.evaluate(ASKED, {"packed": packed, "ids": [site.ids[name]], "words": words})
    assert answer["questions"] > 30
    assert answer["differ"] == []
