"""An evaluation becomes a log of Inspect, always the same bytes, and a log's samples become a dataset."""

import io
import json
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from components import component

from refold.modules.evaluation import DatasetError, EvalResult, Evaluation, exact_match, success_criteria
from refold.modules.evaluation.inspect_logs import inspect_log, read_inspect_samples
from refold.modules.examples.game_of_24 import GameOf24


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> EvalResult:
    rows: list[dict[str, Any]] = [
        {
            "id": "can/1",
            "input": "4 9 10 13",
            "target": "yes",
            "kind": "x",
            "success_criteria": ["makes 24: 4 9 10 13"],
        },
        {"id": "cannot", "input": "1 1 1 1", "target": ["no", "none"]},
    ]
    for row in rows:
        row["success_criteria"] = [f"makes 24: {row['input']}"]
    folder = tmp_path_factory.mktemp("evaluation")
    scorers = [success_criteria(), exact_match()]
    return Evaluation(task=GameOf24, dataset=rows, scorers=scorers, repeats=2, folder=folder).run_sync()


def test_a_log_is_deterministic_and_plain_zip(result: EvalResult) -> None:
    data = inspect_log(result)
    assert data == inspect_log(EvalResult.load(result.folder or ""))
    with zipfile.ZipFile(io.BytesIO(data)) as log:
        names = log.namelist()
        assert names[-2:] == ["summaries.json", "header.json"]
        assert all(name.count("/") <= 1 for name in names)
        sample = json.loads(log.read(names[0]))
    tools = [event for event in sample["events"] if event["event"] == "tool"]
    assert (sample["id"], sample["target"], len(tools)) == ("can/1", "yes", 3)
    assert len({event["uuid"] for event in sample["events"]}) == len(sample["events"])


def test_the_samples_of_a_log_are_a_dataset(result: EvalResult, tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    path.write_bytes(inspect_log(result))
    found = read_inspect_samples(path)
    assert [(row.id, row.task.objective, row.target) for row in found] == [
        ("can/1", "4 9 10 13", "yes"),
        ("cannot", "1 1 1 1", ["no", "none"]),
    ]
    assert found.rows[0].columns["kind"] == "x"
    path.write_bytes(b"no zip")
    with pytest.raises(DatasetError, match="not a log of Inspect"):
        read_inspect_samples(path)


READ_AND_WRITE = """
from inspect_ai.log import read_eval_log, write_eval_log
log = read_eval_log("x.eval")
print(log.model_dump_json())
write_eval_log(log, "again.eval")
"""


def test_inspect_itself_reads_the_log(result: EvalResult, tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    path.write_bytes(inspect_log(result))
    python = Path(component("inspect")).resolve().parent / "python"
    read = subprocess.run([python, "-c", READ_AND_WRITE], check=True, capture_output=True, cwd=tmp_path)
    log = json.loads(read.stdout)
    assert (log["status"], log["results"]["total_samples"], len(log["samples"])) == ("success", 4, 4)
    first = log["samples"][0]
    assert (first["id"], first["epoch"], first["scores"]["criteria"]["value"]) == ("can/1", 1, 1.0)
    assert [event["event"] for event in first["events"]].count("tool") == 3
    again = tmp_path / "again.eval"
    with zipfile.ZipFile(again) as packed:
        assert {each.compress_type for each in packed.infolist()} == {93}  # zstd
    assert [row.id for row in read_inspect_samples(again)] == ["can/1", "cannot"]
    data = again.read_bytes()
    with zipfile.ZipFile(again) as packed:
        sample = next(each for each in packed.infolist() if each.filename.startswith("samples/"))
    middle = sample.header_offset + 60 + sample.compress_size // 2
    again.write_bytes(data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :])
    with pytest.raises(DatasetError, match="not a log of Inspect"):
        read_inspect_samples(again)
