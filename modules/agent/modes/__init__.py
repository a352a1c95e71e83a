"""Tool modes: how a model sees tools, calls them, and gets results.

There is one text mode, `TextMode`, and `TEXT_MODES` is the table of its forms.
"""
