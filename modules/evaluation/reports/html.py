"""A report as one HTML file.

The file has no script and makes no request. It follows the reader's choice of a light or dark theme.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from typing import Any

from ....traces.printable import printable
from ..result import EvalResult, Spent
from ..sample import Sample

_STYLE = """\
:root { color-scheme: light dark; --ink: light-dark(#1c2024, #e8eaed); --paper: light-dark(#fff, #16181b);
  --soft: light-dark(#5b636b, #a3abb3); --line: light-dark(#d9dee3, #33383e);
  --good: light-dark(#17692f, #6fce88); --bad: light-dark(#a8201a, #ff938b); }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 72rem; padding: 1.5rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif }
h1, h2, p { overflow-wrap: anywhere }
h1 { font-size: 1.4rem; margin: 0 0 .25rem } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem }
p { margin: .25rem 0; color: var(--soft) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line) }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td, th { max-width: 24rem; overflow-wrap: break-word }
td.text { min-width: 14rem; max-width: 32rem; overflow-wrap: anywhere; white-space: pre-wrap }
.good { color: var(--good) } .bad { color: var(--bad) }
"""
_MOST = 5_000
"""The most samples in the file; the CSV and JSON reports have all of them."""


def html_report(result: EvalResult, groups: Iterable[str] = ()) -> str:
    """Return the report as one HTML document.

    Every text of a run is escaped.
    """
    digest = b64encode(sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="no-referrer">',
        f"<title>{_text(result.name)} · refold</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>",
        f"<h1>{_text(result.name)}</h1>",
        f"<p>{len(result.samples)} runs, {result.passed_count} passed, {result.failed_count} failed, "
        f"{result.error_count} without a verdict; {_spent(result)}, {result.tokens:,} tokens, "
        f"{result.seconds:,.1f} s of work</p>",
        "<h2>Scores</h2>",
        _figures({"": result}),
    ]
    for column in groups:
        parts += [f"<h2>By {_text(column)}</h2>", _figures(result.by(column), _text(column))]
    if result.changes:
        rows = [
            [_cell(each.id), _cell(each.repeat), _cell(each.scorer), _cell(each.before), _cell(each.after)]
            for each in result.changes[:_MOST]
        ]
        heads = ["task", "repeat", "score", "before", "now"]
        parts += ["<h2>Scores that changed</h2>", _table(heads, rows, (1, 3, 4))]
    scorers = result.scorers
    heads = ["task", "repeat", "verdict", *scorers, "answer", "steps", "cost", "seconds"]
    numbers = (1, *range(3, 3 + len(scorers)), *range(4 + len(scorers), 7 + len(scorers)))
    parts += ["<h2>Runs</h2>", _table(heads, [_sample(each, scorers) for each in result.samples[:_MOST]], numbers)]
    if len(result.samples) > _MOST:
        parts.append(f"<p>{len(result.samples) - _MOST:,} more runs are omitted; the CSV report has them.</p>")
    return "\n".join([*parts, "</main>\n</body>\n</html>\n"])


def _figures(results: dict[str, EvalResult], head: str = "") -> str:
    rows = []
    for label, result in results.items():
        estimates = result.estimates
        for name, found in estimates.items():
            if found is not None:
                cells = [name, f"{found.mean:.3f}", found.ends(), found.tasks, found.runs]
                rows.append([_cell(each) for each in ([label, *cells] if head else cells)])
        if not head and result.repeats > 1:
            for title, figure in (("pass@", result.pass_at), ("pass^", result.pass_hat)):
                for k in range(1, result.repeats + 1):
                    if (value := figure(k)) is not None:
                        rows.append(
                            [_cell(each) for each in (f"{title}{k}", f"{value:.3f}", "", len(result.counts()), "")]
                        )
    first = [head] if head else []
    heads = [*first, "score", "mean over tasks", "95 % interval", "tasks", "runs"]
    return _table(heads, rows, range(len(first) + 1, len(first) + 5))


def _sample(sample: Sample, scorers: Sequence[str]) -> list[str]:
    verdict = {True: "passed", False: "failed", None: "no verdict"}[sample.passed]
    kind = {True: ' class="good"', False: ' class="bad"', None: ""}[sample.passed]
    scores = []
    for name in scorers:
        score, raised = sample.scores.get(name), sample.score_errors.get(name)
        about = raised or (score.reason if score is not None else "")
        title = f' title="{_text(about)}"' if about else ""
        scores.append(f"<td class=number{title}>{'error' if raised else _number(sample.metrics.get(name))}</td>")
    errors = "; ".join(f"{name}: {text}" for name, text in sample.score_errors.items())
    said = sample.output if sample.output is not None else sample.error or errors or sample.status
    return [
        _cell(sample.id),
        f"<td class=number>{sample.repeat}</td>",
        f"<td{kind}>{verdict}</td>",
        *scores,
        f'<td class="text">{_text(said[:2000])}</td>',
        f"<td class=number>{sample.steps}</td>",
        f"<td class=number>{_text(str(Spent(sample.cost, sample.unpriced)))}</td>",
        f"<td class=number>{sample.seconds:.1f}</td>",
    ]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int]) -> str:
    right = set(numbers)
    head = "".join(
        f'<th scope="col"{" class=number" if i in right else ""}>{_text(each)}</th>' for i, each in enumerate(heads)
    )
    body = "\n".join(
        "<tr>"
        + "".join(c.replace("<td>", "<td class=number>", 1) if i in right else c for i, c in enumerate(row))
        + "</tr>"
        for row in rows
    )
    parts = (
        '<div class="scroll" tabindex="0"><table>',
        f"<thead><tr>{head}</tr></thead>",
        f"<tbody>\n{body}\n</tbody></table></div>",
    )
    return "\n".join(parts)


def _cell(value: Any) -> str:
    return f"<td>{_text(_number(value) if isinstance(value, float) or value is None else str(value))}</td>"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"


def _spent(result: EvalResult) -> str:
    judges = f", judges {result.judging}" if result.judging != Spent() else ""
    return _text(f"{result.spent}{judges}")


def _text(text: str) -> str:
    return escape(printable(text), quote=True)
