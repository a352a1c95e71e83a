"""What a trace, or a folder of them, can be asked: which runs there are and how they are related, where two of them
part, and who wrote a value.
"""
