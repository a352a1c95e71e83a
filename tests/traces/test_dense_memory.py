"""Reading a large file of ordinary records takes memory for an index of its lines, and not for the file."""

import subprocess
import sys
from hashlib import blake2b
from pathlib import Path
from typing import Any

import orjson
import pytest

SIZE = 150_000_000
MOST = 100_000
"""In kilobytes, the libraries included, which take 25,000 to 60,000."""
LIMITED = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400_000_000, 400_000_000)); "
WAYS = {
    "check": "trace.check()",
    "steps": "assert sum(len(step.records) for step in trace.steps) > 10_000",
    "replay": "assert [step.state['n'] for step in replay(trace)][-1] == len(trace.steps)",
    "records": "assert sum(record.kind == 'commit' for record in trace.records) == trace.step_count",
    "last state": "assert trace.final_state['n'] == trace.step_count and trace.status == 'completed'",
    "blame": "assert len(list(trace.iter_blame('/n'))) == trace.step_count",
    "list": "assert list_traces(path.parent)[0].steps == trace.step_count",
    "reopen": "TraceWriter.reopen(path)[0].close()",
    "repair": "assert repair(path).cut == 0",
}
READER = """
from pathlib import Path
from refold.traces import Trace, list_traces, replay
from refold.traces.file.repair import repair
from refold.traces.file.writer import TraceWriter
path = Path(sys.argv[1])
trace = Trace.load(path)
{way}
(peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(peak)  # unlike ru_maxrss, it begins anew with the program: a large parent does not count
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS, and the peak in /proc")


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, last, seq, step, text = tmp_path_factory.mktemp("dense") / "r.trace.jsonl", b"", 0, 0, "word " * 1000
    with open(path, "wb") as file:

        def put(kind: str, **members: Any) -> int:
            nonlocal last, seq
            body = orjson.dumps({"kind": kind, "seq": seq, "step": step, "at": 1.7e9 + seq, **members})[:-1]
            last = blake2b(last + body, digest_size=16).hexdigest().encode()
            file.write(body + b',"hash":"' + last + b'"}\n')
            seq += 1
            return seq - 1

        put("header", format=1, run_id="r", parent=None, budget={}, task={"id": "t"})
        put("snapshot", state={"n": 0, "text": ""})
        while file.tell() < SIZE:
            put("decide", decision={"mode": "act", "actions": [{"id": f"a{step}", "name": "look", "args": {}}]})
            call = put("intent", phase="act", name="look", args={"at": step}, action=f"a{step}", key=f"k{step}")
            done = put("outcome", intent=call, result=text)
            patch = [{"op": "replace", "path": "/n", "value": step + 1}]
            patch += [{"op": "replace", "path": "/text", "value": text}]
            put("commit", patch=patch, observation={"results": [done]}, usage=None)
            step += 1
        put("end", status="completed", stop_reason="final", usage={})
    return path


@pytest.mark.parametrize("way", WAYS)
def test_reading_holds_an_index_and_not_the_file(dense: Path, way: str) -> None:
    code = LIMITED + READER.format(way=WAYS[way])
    done = subprocess.run([sys.executable, "-c", code, str(dense)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < MOST
