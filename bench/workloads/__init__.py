"""The workloads: the runs that the figures measure, and what they are compared with."""
