"""Diagrams: boxes in rows, and arrows between them.

`diagram` has the boxes and arrows; `mermaid` writes them. `module_diagram` draws a module or an Agent.
`loop_diagram` draws the engine's loop by trying all its transitions.
"""
