"""The Agent as an engine module: its decide, act and reduce.

`decide` asks the model, `act` calls tools and shows events to hooks, and `reduce` writes both into the state. A `Turn`
is one step as all three see it: the model's answer and its outcome. `dispatch` shows events to hooks and collects their
reactions; `state` is the state of a run.
"""
