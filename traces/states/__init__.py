"""The states of a run, folded from its trace: snapshots, and the patches between them; no user code is imported."""
