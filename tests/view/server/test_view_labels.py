"""What tells a fork from its siblings."""

from pathlib import Path

from toys.link_checker import LinkChecker
from view_server import serving

from refold import Engine
from refold.testing import FakeClock


def test_forks_with_different_lists_have_different_labels(tmp_path: Path) -> None:
    engine = Engine(LinkChecker(FakeClock(1_700_000_000), 12, seed=7), traces=tmp_path, seed=1)
    source = engine.run("Check every link.").trace
    for ahead in (["/one"], ["/two"], ["/" + "x" * 60]):
        engine.fork(source, 1, {"/ahead": ahead})
    with serving(tmp_path) as asking:
        labels = {node["label"] for node in asking.get("family", id=source.run_id)["nodes"] if node["parent"]}
        (row,) = asking.get("runs")["rows"]
    assert labels == {'/ahead = ["/one"]', '/ahead = ["/two"]', "/ahead = 1 item"}
    assert (row["descendants"], row["forks"]) == (3, 3)
