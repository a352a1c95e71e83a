"""Branch strategies choose among a decision's candidates.

They try the candidates, or rate them.

`protocol` defines a strategy and the tree of candidates that it works on. `strategies` has refold's own strategies.
`choice` checks a strategy's choice and writes it down. The engine starts the child runs that a strategy asks for, and
calls its score.
"""
