"""Drawn ways round rules about commands: none gets through, and what is let through is seen to run nothing hidden."""

import contextlib
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from bypasses import CODE, COPIES, LONG, SHORT, VARIABLES, WRAPPERS, lines, quoted

from refold.modules.agent.chat.tool_calls import ToolCall
from refold.modules.policies import ToolRules
from refold.modules.policies.rules.known import programs
from refold.modules.policies.rules.programs.options import Spec

MANY = int(os.environ.get("REFOLD_DRAWN", "0"))
"""How many lines are drawn of each kind; 0 for the few that are drawn each time."""

RULES = {
    "git push *": ("git", "push origin main"),
    "rm -rf *": ("rm", "-rf victim"),
    "npm publish *": ("npm", "publish"),
    "curl *": ("curl", "http://x"),
    "terraform apply *": ("terraform", "apply -auto-approve"),
}


def verdict(rules: ToolRules, cmd: str) -> str:
    return rules.verdict(ToolCall.of("c", "bash", {"cmd": cmd})).action


@pytest.mark.parametrize("rule", RULES)
def test_no_drawn_line_gets_past_a_rule_that_denies(rule: str) -> None:
    rules = ToolRules(deny=[f"bash({rule})"])
    through = [line for line in lines(7, MANY or 500, *RULES[rule]) if verdict(rules, line) != "deny"]
    assert through == []


@pytest.mark.parametrize("rule", ["git grep *", "git fetch *", "git *", "pip install *", "ls *", "find *", "make *",
                                  "npm test *", "env *", "tar *", "sort *", "xargs *", "git log *"])  # fmt: skip
def test_no_drawn_line_is_allowed_by_a_rule_that_allows_something_else(rule: str) -> None:
    rules = ToolRules(allow=[f"bash({rule})"], otherwise="ask")
    program = rule.split()[0]
    target = "rm" if program != "rm" else "curl"
    allowed = [line for line in lines(11, MANY or 500, target, "-rf victim") if verdict(rules, line) != "ask"]
    assert [line for line in allowed if not line.startswith(f"{program} {target} ")] == []


def test_the_drawn_lines_use_all_that_there_is() -> None:
    sizes = [len(each) for each in (LONG, SHORT, CODE, WRAPPERS, VARIABLES, COPIES)]
    assert all(size > least for size, least in zip(sizes, (40, 20, 80, 120, 100, 20), strict=True)), sizes


# what really happens, with programs that only say that they were called

TOOLS = [
    *("bash", "sh", "env", "cat", "xargs", "timeout", "nice", "nohup", "stdbuf", "setsid", "sort", "split", "install"),
    *("tar", "find", "sed", "awk", "true", "tee", "make", "perl", "python3", "uniq", "cp", "ln", "dd", "echo", "ls"),
    *("printf", "mkdir", "touch"),
]


@pytest.fixture
def stubs(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder with programs: the usual ones, and a `curl` that only writes down that it was called."""
    folder, home = tmp_path / "bin", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    for name in (*TOOLS, "git"):
        if (found := shutil.which(name, path="/usr/bin:/bin")) is not None:
            (folder / name).symlink_to(found)
    (folder / "curl").write_text('#!/bin/sh\necho "$@" >> "$RAN"\n')
    (folder / "curl").chmod(0o755)
    env = {
        "PATH": str(folder), "RAN": str(tmp_path / "ran"), "HOME": str(home), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
    }  # fmt: skip
    return folder, env


def _works(tmp_path: Path, env: dict[str, str], number: int) -> Path:
    """A folder with a repository, another beside it, and a file."""
    work = tmp_path / f"work{number}" / "repository"
    work.mkdir(parents=True)
    make = "git init -q; echo x > f; echo x > a; git add f; git commit -qm x; git commit -q --allow-empty -m y; \
git clone -q . ../other; mkdir -p bin; printf 'x:\\n\\ttrue\\n' > Makefile"
    subprocess.run(["bash", "-c", make], env=env, cwd=work, check=True, capture_output=True, timeout=250)
    return work


def _ran(line: str, work: Path, env: dict[str, str]) -> bool:
    """Whether a line has called the stub."""
    told = Path(env["RAN"])
    told.unlink(missing_ok=True)
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(
            ["bash", "-c", line], env=env, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=20
        )
    return told.exists()


def _is_here(line: str, folder: Path) -> bool:
    """Whether a line uses nothing but the programs of the folder."""
    return (
        "/usr/" not in line
        and "--system" not in line
        and line.split()[0] in {each.name for each in folder.iterdir()}
        and "sudo" not in line
    )


def test_drawn_lines_are_real(stubs: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """Of the lines that are drawn and can be tried here, many do run the command; all of those are denied."""
    folder, env = stubs
    work = _works(tmp_path, env, 0)
    rules = ToolRules(deny=["bash(curl *)"])
    tried = [line for line in lines(3, 600, "curl", "http://x") if _is_here(line, folder)][: MANY or 100]
    real = [line for line in tried if _ran(line, work, env)]
    assert len(real) > len(tried) // 6, f"{len(real)} of {len(tried)}"
    assert [line for line in real if verdict(rules, line) != "deny"] == []


def _known(rng: random.Random) -> str:
    """A line of programs that the tables know, with options that they know, whose values are a command."""
    name = rng.choice(["git"] * 12 + ["sort", "split", "install", "tar", "find", "env", "xargs", "uniq", "make", "tee"])
    words, spec = [name], programs()[name]
    payload = quoted(
        rng.choice(["curl x", "curl x;:", "!curl x", "|curl x", "exec=curl x", "./curl", "sh -c 'curl x'"])
    )
    while True:
        words += [_option(rng, spec, payload) for _ in range(rng.randint(0, 3)) if spec.options]
        if not spec.children:
            break
        child = rng.choice(sorted(spec.children))
        words.append(child)
        spec = spec.children[child]
    if rng.random() < 0.3:
        words.append(
            rng.choice(["-", "--"]) + rng.choice("abcdefghijklmnopqrstuvwxyzOIFSX") + rng.choice(["", "o", "x", "xe"])
        )
    return " ".join([*words, *rng.sample(["f", "../other", "HEAD", "x", payload], rng.randint(0, 2))])


def _option(rng: random.Random, spec: Spec, payload: str) -> str:
    name = rng.choice(sorted(spec.options))
    if not spec.options[name].value:
        return name
    return f"{name}={payload}" if name.startswith("--") else f"{name}{payload}"


def test_what_is_let_through_runs_nothing_that_was_not_seen(stubs: tuple[Path, dict[str, str]], tmp_path: Path) -> None:
    """The tables are held against the programs themselves: no option that they know runs its value."""
    _, env = stubs
    rules, rng = ToolRules(deny=["bash(curl *)"]), random.Random(13)
    passed = 0
    for number in range((MANY or 300) // 50):
        work = _works(tmp_path, env, number)
        for line in [_known(rng) for _ in range(150)]:
            if passed < (MANY or 120) and "--system" not in line and verdict(rules, line) == "allow":
                passed += 1
                assert not _ran(line, work, env), line
    assert passed > 100
