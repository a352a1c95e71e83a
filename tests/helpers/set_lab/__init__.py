"""The kill laboratory of sets: a set in real processes, SIGKILL at drawn moments, and what must hold afterwards.

`work` is the set, and `command` the process that runs it; its effects write *marks* into a file of their own (see
`marks`). `servers` has the stores and the Ray cluster, `victims` what is killed, `rounds` plays a round, and `verdict`
compares the marks, the traces and the table with an undisturbed run. By hand, with the helpers on the path:

    PYTHONPATH=tests/helpers .venv/bin/python -m set_lab --rounds 30 --tasks 500 --store postgres --executor ray
"""
