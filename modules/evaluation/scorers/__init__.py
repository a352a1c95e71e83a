"""Scorers: functions that score one recorded run, with parameters by name.

A scorer's parameters name its inputs: `trace`, `trajectory`, `state`, `answer`, `target`, `row`, … (see
`EvaluatedRun`). All inputs come from the recorded run, so an old run is scored again without a model. A scorer that
raises has an error, not a score of zero.
"""

from .criteria import success_criteria
from .judged import JudgeScorer, judge_agreement
from .matches import exact_match, includes, json_schema_match, numeric_match, regex_match
from .run import EvaluatedRun
from .score import Score
from .scorer import RunScorer, as_scorer, as_scorers, scorer
from .tool_calls import called_before, called_tool

__all__ = [
    "EvaluatedRun",
    "JudgeScorer",
    "RunScorer",
    "Score",
    "as_scorer",
    "as_scorers",
    "called_before",
    "called_tool",
    "exact_match",
    "includes",
    "json_schema_match",
    "judge_agreement",
    "numeric_match",
    "regex_match",
    "scorer",
    "success_criteria",
]
