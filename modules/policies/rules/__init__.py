"""Rules that allow, ask for or deny tools, by name and by arguments."""

from .rule import Rule
from .tool_rules import RuleAction, ToolRules, Verdict, call_text, verdict_of

__all__ = ["Rule", "RuleAction", "ToolRules", "Verdict", "call_text", "verdict_of"]
