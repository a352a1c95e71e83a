"""How a branch is decided: strategies are pure functions of a tree of candidates and their scores.

`protocol` says what a strategy is shown and what it answers, `strategies` has the ones that come along, and `choice`
checks an answer and writes it down. A strategy performs nothing itself: the engine starts the child runs it asks for,
and asks its scores.
"""
