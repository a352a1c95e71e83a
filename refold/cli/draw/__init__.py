"""Diagrams: boxes in rows, and arrows between them.

`diagram` is what is drawn, `mermaid` and `svg` write it down, and need no other program. `module_diagram` draws a
module or an Agent, `loop_diagram` the engine's loop, by trying all its transitions.
"""
