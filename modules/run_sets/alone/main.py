"""The process of a task that runs alone; see `own_process`."""

import os
import pickle
import signal
import sys
import threading
from contextlib import suppress

import anyio

from ....traces.stores import open_store
from ..stop import StopRequest
from ..worker import Worker
from .own_process import ENDED, READY, STOPPED


def main() -> None:
    """Work on the task that stdin has.

    The descriptor in the arguments gets a byte when the process is ready, and one when the task has ended. Without the
    first process, this one is killed: the task's run can be resumed.
    """
    status_pipe = int(sys.argv[1])
    os.set_inheritable(status_pipe, False)
    sys.path[:] = pickle.load(sys.stdin.buffer)
    plan, lease = pickle.load(sys.stdin.buffer)
    store = open_store(plan.where)
    stop = StopRequest()
    worker = Worker(plan, store, stop, number=f"{lease.key}/alone", concurrency=1)

    def listen() -> None:
        os.read(0, 1)  # returns when the first process has died, which sends nothing more
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=listen, name="life of the first process", daemon=True).start()
    with suppress(BrokenPipeError):  # the first process has died
        os.write(status_pipe, READY)
        anyio.run(worker.run_one, lease)
        os.write(status_pipe, STOPPED if stop.draining else ENDED)
        store.close()
    os._exit(0)  # a thread that a task has left must not keep the process
