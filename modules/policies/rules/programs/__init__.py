"""The effects of programs, judged by their arguments.

Arguments are options, operands, and code in languages.
"""
