"""The Agent as an engine module: `decide` asks the model, `act` calls tools and tells hooks, `reduce` folds both in.

A `Turn` is one step as all three see it: what the model said, with what was made of it. `dispatch` tells hooks of
events and obeys their reactions; `state` is what a run knows.
"""
