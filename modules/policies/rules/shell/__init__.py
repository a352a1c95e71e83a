"""Shell command lines, read as bash reads them.

`text` and `words` are the grammar, and `lines` finds the commands. `plain_commands` and `command_line` give the result
for rules: the commands that a line surely runs, or why they cannot be determined.
"""
