"""What a sandboxed command finds at which path.

`hidden_paths` and `toolchains` are paths of the machine, `scratch` is the run's own /tmp and home, and `guarded_files`
and `put_back` protect the parts of a workspace that others run as code. Nothing here knows how a sandbox is made.
"""
