"""Rules that allow, ask for or deny calls of tools.

They go by the tool's name and by the call's arguments.
"""

from .rule import Rule
from .tool_rules import RuleAction, RuleVerdict, ToolRules, call_text, verdict_of

__all__ = ["Rule", "RuleAction", "RuleVerdict", "ToolRules", "call_text", "verdict_of"]
