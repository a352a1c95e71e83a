"""Environments: the folder in which a run's tools and commands work.

`environment` is the protocol, `folder` and `scratch` are the implementations, and `registry` maps the types that a task
names to them. `open_environment` opens one with the task's mounts, and closes it whatever happens.
"""
