"""Shell command lines, read as bash reads them.

`text` and `words` are the grammar, `lines` the commands in it, and `plain_commands` and `command_line` the answer that
rules need: the commands that a line surely runs, or the reason why nobody can know.
"""
