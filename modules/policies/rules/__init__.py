"""Rules that allow, ask for or deny calls of tools.

They match the tool's name and the call's arguments.
"""

from .rule import Rule
from .tool_rules import RuleAction, RuleVerdict, ToolRules, verdict_of

__all__ = ["Rule", "RuleAction", "RuleVerdict", "ToolRules", "verdict_of"]
