"""The workloads: the runs that the figures measure, and the lower bounds."""
