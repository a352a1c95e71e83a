"""Rules about commands: nothing hidden slips through one that denies, and what is harmless is not in its way."""

import json
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest
from each_case import each_case

from refold.modules.agent.chat.tool_calls import ToolCall
from refold.modules.agent.tools.actions import RAW_ARGUMENTS
from refold.modules.policies import ToolRules
from refold.modules.policies.rules.call import Call
from refold.modules.policies.rules.programs.python_code import doubt_of_python
from refold.modules.policies.rules.rule import Rule, covers_line
from refold.modules.policies.rules.shell.command_line import line_of

COMMANDS = json.loads(Path(__file__).with_name("shell_commands.json").read_text())
HOSTILE, HARMLESS = COMMANDS["hostile"], COMMANDS["harmless"]
"""Lines that run `git push` in some hidden way, or may run it, for all that can be told; and lines that do not."""

NO_PUSH = ToolRules(deny=["bash(git push *)"])


def bash(cmd: str, **more: object) -> ToolCall:
    return ToolCall.of("c", "bash", {"cmd": cmd, **more})


def verdict(rules: ToolRules, cmd: str, **more: object) -> str:
    return rules.verdict(bash(cmd, **more)).action


EVERYDAY = Path(__file__).with_name("everyday.txt").read_text().splitlines()
"""Lines as projects in many languages have them in their Makefiles and READMEs."""


def test_everyday_lines_are_hardly_ever_doubted() -> None:
    doubted = [line for line in EVERYDAY if verdict(NO_PUSH, line) != "allow"]
    assert len(EVERYDAY) > 800
    assert len(doubted) <= len(EVERYDAY) * 5 // 100, doubted


def test_there_are_enough_of_both() -> None:
    assert len(set(HOSTILE)) > 450
    assert len(set(HARMLESS)) > 200


def test_no_hidden_command_gets_through() -> None:
    asks = ToolRules(ask=["bash(git push:*)"])
    allows = ToolRules(allow=["bash(ls *)", "bash(echo *)", "bash(git log *)"], otherwise="ask")

    def law(cmd: str) -> None:
        assert (verdict(NO_PUSH, cmd), verdict(asks, cmd), verdict(allows, cmd)) == ("deny", "ask", "ask")

    each_case(law, ((cmd,) for cmd in HOSTILE))


def test_what_is_harmless_is_not_denied() -> None:
    def law(cmd: str) -> None:
        assert verdict(NO_PUSH, cmd) == "allow", NO_PUSH.verdict(bash(cmd)).why

    each_case(law, ((cmd,) for cmd in HARMLESS))


def test_none_of_the_hostile_lines_is_allowed_by_rules_for_the_harmless() -> None:
    """An `allow` has to cover every part of a line."""
    rules = ToolRules(allow=["bash(ls *)", "bash(git status)", "bash(git log *)", "bash(cat *)"], otherwise="deny")
    good = [
        "ls",
        "ls -la",
        "/bin/ls x",
        "git status",
        "ls; ls",
        "ls && git status",
        "cat f | cat",
        "ls $x",
        "ls *",
        'git log "a b"',
        "(ls)",
        "bash -c 'ls x'",
    ]
    bad = [
        "git status x",
        "ls | wc",
        "ls; rm x",
        "ls > f",
        "ls >> /etc/passwd",
        "ls $(rm x)",
        "cat `rm x`",
        "LS=1 PATH=. ls",
        "timeout 5 ls",
        "xargs ls",
        "env ls",
        "ls &> f",
        "git log $x",
        "./ls",
        "if ls; then rm x; fi",
        "ls <(rm x)",
    ]
    assert {cmd: verdict(rules, cmd) for cmd in good} == dict.fromkeys(good, "allow")
    assert {cmd: verdict(rules, cmd) for cmd in bad} == dict.fromkeys(bad, "deny")
    assert verdict(rules, "ls 2>/dev/null") == "allow"
    assert verdict(rules, "ls 2>&1") == "allow"
    assert verdict(rules, "ls", env={"LD_PRELOAD": "x"}) == "deny"
    assert verdict(rules, "git status", input="x") == "allow"


def test_what_programs_run_has_to_be_allowed_as_well() -> None:
    rules = ToolRules(allow=["bash(timeout *)", "bash(ls *)", "bash(find *)", "bash(env *)"], otherwise="ask")
    good = ["timeout 5 ls -la", "find . -name x", "find . -exec ls {} +", "env ls", "env LANG=C timeout 5 ls"]
    bad = ["timeout 5 rm x", "find . -exec rm {} +", "env rm x", "timeout 5 bash x.sh", "xargs ls", "env A=1 ls"]
    assert {cmd: verdict(rules, cmd) for cmd in good} == dict.fromkeys(good, "allow")
    assert {cmd: verdict(rules, cmd) for cmd in bad} == dict.fromkeys(bad, "ask")
    assert verdict(rules, "env") == "allow"


def test_a_rule_without_stars_allows_that_line_alone() -> None:
    rules = ToolRules(allow=["bash(make test && make lint)"], otherwise="ask")
    assert verdict(rules, "make test && make lint") == "allow"
    assert verdict(rules, "make test && make lint x") == "ask"
    assert verdict(rules, "make test && make lint", env={"A": "b"}) == "ask"


@pytest.mark.parametrize(
    ("pattern", "denied", "free"),
    [
        (
            "rm -rf *",
            [
                "rm -rf /",
                "rm -fr x",
                "rm -r -f x",
                "rm x -rf",
                "rm --recursive --force x",
                "rm -Rf x",
                "rm --rec --fo x",
                "sudo rm -rf x",
                'rm "$x"',
                "find . -exec rm -rf {} +",
                "rm -rfv x",
            ],
            ["rm x", "rm -f x", "rm -r x", "rmdir x", "ls -rf", "git rm -r --cached x"],
        ),
        ("curl", ["curl x", "curl", "x=$(curl y)", "/usr/bin/curl -s z", "wget x | xargs curl"], ["wget x", "ls curl"]),
        (
            "npm publish",
            ["npm publish", "npm publish --tag x", "npm --loglevel silent publish", 'npm "pub"lish'],
            ["npm test", "npm run build", "npm install publish-x"],
        ),
        (
            "docker run * --privileged",
            [
                "docker run --privileged x",
                "docker run -it x --privileged",
                "docker --context a run x -p 1 --privileged",
            ],
            ["docker ps", "docker run x"],
        ),
        ("*push*", ["git push", "x push y", "npm push"], ["git status", "ls"]),
        ("git *", ["git status", "git", "x=1 git log"], ["ls", "grep git x"]),
        (
            "kubectl delete *",
            ["kubectl delete pod x", "kubectl -n x delete pod y", "kubectl --namespace x delete y"],
            ["kubectl get pods", "kubectl -n x describe y"],
        ),
        (
            "kubectl delete *-prod",
            ["kubectl delete web-prod", 'kubectl delete "web$x"', 'kubectl delete "$x"'],
            ["kubectl delete web-test", 'kubectl get "web$x"'],
        ),
        ("cat key.pem", ["cat key.pem", 'cat "ke$x"', 'cat "$x"'], ["cat other.pem", 'cat "readme$x"']),
    ],
)
def test_patterns_of_commands(pattern: str, denied: list[str], free: list[str]) -> None:
    rules = ToolRules(deny=[f"bash({pattern})"])
    assert {cmd: verdict(rules, cmd) for cmd in denied} == dict.fromkeys(denied, "deny")
    assert {cmd: verdict(rules, cmd) for cmd in free} == dict.fromkeys(free, "allow")


def test_programs_of_ones_own_are_trusted_by_name() -> None:
    own = ToolRules(deny=["bash(git push *)"], trusted=["./gradlew"])
    assert verdict(own, "./gradlew src/*.x") == "allow"
    for cmd in ("./gradlew $x", "./gradlew *", './gradlew "a b;c"', "ls | ./gradlew", "xargs ./gradlew"):
        assert verdict(own, cmd) == "deny"
    assert verdict(NO_PUSH, "./gradlew build") == "deny"
    rules = ToolRules(deny=["bash(git push *)"], trusted=["./gradlew"])
    assert verdict(rules, "./gradlew build") == "allow"
    assert verdict(rules, "./gradlew git push") == "deny"


def test_it_says_what_it_stands_on() -> None:
    assert NO_PUSH.verdict(bash("ls; git -C x push")).why == "bash(git push *): it runs 'git -C x push'"
    assert "the program $x is known only at run time" in NO_PUSH.verdict(bash("$x y")).why
    assert "a quote is not closed" in NO_PUSH.verdict(bash("echo 'x")).why


def test_arguments_that_cannot_be_read_match() -> None:
    for arguments in ('{"cmd": ', '{"cmd": ["git", "push"]}', '{"cmd": 3}', '{"cmd": "ls", "cmd": "git push"}'):
        assert NO_PUSH.verdict(ToolCall.of("c", "bash", arguments)).action == "deny"


def test_long_and_deep_lines_are_doubted_at_once() -> None:
    for cmd in (
        "(" * 5_000,
        "$(" * 5_000,
        "echo " + "x" * 50_000,
        "{ " * 3_000,
        "`" * 4_001,
        "if " * 4_000,
        "a|" * 5_000,
    ):
        assert verdict(NO_PUSH, cmd) == "deny"


CODE = [
    "print(1)",
    "import math; print(math.pi)",
    "import json\nprint(json.dumps([x for x in range(3)]))",
    "from collections import Counter\nprint(Counter('abc').most_common())",
    "print('{:.2f}'.format(3.14159))",
]
BAD_CODE = [
    "import os",
    "import subprocess as s",
    "__import__('os')",
    "eval('1')",
    "exec('1')",
    "open('x')",
    "import importlib",
    "().__class__.__base__.__subclasses__()",
    "getattr(1, 'x')",
    "from os import system",
    "import os.path",
    "import ctypes",
    "import json; json.codecs",
    "import random; random._os.system('x')",
    "import statistics; statistics.sys",
    "globals()",
    "from random import _os",
    "import dataclasses; dataclasses.sys.modules['os']",
    "(",
    "import pty",
    "breakpoint()",
    "import collections; collections._sys",
    "import heapq; heapq.__builtins__",
    "f'{().__class__}'",
    "import re; re.enum.sys",
    "import uuid; uuid.os.system('x')",
    "import operator; operator.attrgetter('x')",
    "match 1:\n case int(__class__=c): pass",
    "import enum; enum.bltns.eval('1')",
    "import pickle",
    "import typing; typing.get_type_hints",
    "import datetime as d; d.sys",
    "import calendar; calendar.sys",
    "import difflib; difflib.doctest",
    "import string; string.Formatter().vformat('x', (), {})",
    "list(map(eval, ['1']))",
    "if 0: eval = 1\nlist(map(eval, ['1']))",
    "def f(): pass",
    "class A: pass",
    "lambda: 1",
    "import math as m",
    "import functools",
    "x = '{0.x}'; x.format(1)",
    "'{0.x}'.format(1)",
    "'{0[x]}'.format(1)",
    "str.format('{0.x}', 1)",
    "with 1: pass",
    "try: pass\nexcept: pass",
    "(x := 1)",
    "print(*[1], **{})\nexit()",
    "[print][0](1)",
    "list(map(execfile, ['x']))",
]


@pytest.mark.parametrize("code", CODE)
def test_code_that_computes_is_no_command(code: str) -> None:
    assert doubt_of_python(code) is None
    assert NO_PUSH.verdict(ToolCall.of("c", "python", {"code": code})).action == "allow"


def test_code_that_may_start_programs_is_held_for_one_that_is_denied() -> None:
    def law(code: str) -> None:
        assert NO_PUSH.verdict(ToolCall.of("c", "python", {"code": code})).action == "deny"

    each_case(law, ((code,) for code in BAD_CODE))


PIECES = [
    *("git push", "git", " ", "push", "gi", "t", "'", '"', "\\", "$'", "`", "$(", ")", "(", "{ ", "}", ";", "&&", "|"),
    *(
        "\n",
        "echo ",
        "#",
        "<<A\n",
        "\nA\n",
        "x=",
        "$x",
        "! ",
        "<",
        "f",
        "-c ",
        "sh ",
        "bash ",
        "env ",
        "xargs ",
        "eval ",
    ),
    *(
        "if ",
        "then ",
        "fi",
        "for i in ",
        "do ",
        "done",
        "[[ ",
        " ]]",
        "\\\n",
        "&",
        "2>&1",
        ">f",
        "<(",
        "timeout 1 ",
        "-u ",
    ),
    *(
        "$((",
        "))",
        "1",
        "-",
        "*",
        "{",
        "time ",
        "exec ",
        "true",
        "$",
        '"$x"',
        "<<<",
        "=",
        "\t",
        "\\;",
        "$'\\x67it'",
        "-- ",
    ),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash tells what a line really runs")
def test_bash_itself_runs_nothing_that_was_not_seen(tmp_path: Path) -> None:
    """Lines put together at random, with a `git` that tells when it is run: none that was let through has run it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    git = folder / "git"
    git.write_text('#!/bin/sh\nfor a in "$@"; do case $a in push) echo x > "$RAN";; esac; done\n')
    git.chmod(0o755)
    for name in ("env", "sh", "cat", "xargs", "true", "timeout", "bash"):
        (folder / name).symlink_to(str(shutil.which(name)))
    told = tmp_path / "ran"
    env = {"PATH": str(folder), "RAN": str(told), "HOME": str(tmp_path)}
    rng = random.Random(5)
    passed = [line for line in (_line(rng) for _ in range(4_000)) if verdict(NO_PUSH, line) == "allow"]
    assert len(passed) > 50
    for line in passed[:100]:
        work = tmp_path / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        subprocess.run(
            ["bash", "-c", line], env=env, cwd=work, stdin=subprocess.DEVNULL, capture_output=True, timeout=250
        )
        assert not told.exists(), line
    subprocess.run(["bash", "-c", "git push"], env=env, check=True)
    assert told.exists(), "it would have been told"
    assert os.environ.get("RAN") is None


def _line(rng: random.Random) -> str:
    line = "".join(rng.choice(PIECES) for _ in range(rng.randint(2, 8)))
    place = rng.randint(0, len(line))
    return line[:place] + rng.choice(["git push", " git push ", ";git push\n", "git\tpush", ""]) + line[place:]


@pytest.mark.parametrize("piece", ["env ", "timeout 1 ", "xargs -I{} ", "a ", "-x ", "sh -c ", "x=1 ", "find -exec "])
def test_long_lines_are_read_in_no_time(piece: str) -> None:
    for head in ("", "env ", "find . -exec ", "xargs "):
        line = line_of((head + piece * 4_000)[:19_990])
        assert len(line.commands) <= 1_001
        assert line.doubts or piece in ("a ", "-x ", "x=1 ")


def test_many_options_are_no_maze() -> None:
    options = "-P " * 900
    assert verdict(NO_PUSH, f"git {options} push") == "deny"
    assert verdict(NO_PUSH, f"git {options} status {options}") == "allow"
    assert verdict(ToolRules(deny=["bash(ls * x * y * push *)"]), f"ls {options} x a y b") == "allow"


def test_reading_a_line_is_quick_the_second_time() -> None:
    before = line_of.cache_info().hits
    for _ in range(5):
        verdict(NO_PUSH, "echo something that is not said elsewhere")
    assert line_of.cache_info().hits - before == 4


@pytest.mark.parametrize(
    ("pattern", "cmd"),
    [
        ("npm publish *", "npm publ"),
        ("npm publish *", "npm pub"),
        ("npm publish *", "npm publis --tag x"),
        ("npm publish *", "npm -w a publish"),
        ("npm publish *", "npm pkg set scripts.p='npm publish'; npm run p"),
        ("npm publish *", "node /usr/lib/node_modules/npm/bin/npm-cli.js publish"),
        ("npm publish *", "node lib/npm-cli.js publish"),
        ("npm publish *", "node ../node_modules/npm/bin/npm-cli.js publ"),
        ("rm -rf *", "busybox rm -rf x"),
        ("rm -rf *", "sudo rm -r --forc x"),
        ("rm -rf *", "git grep -nO'rm -rf x;:' y"),
        ("curl *", "env --s='curl x'"),
        ("terraform apply *", "terraform -chdir=x apply"),
        ("terraform apply *", "terragrunt apply"),
    ],
)
def test_ways_round_other_rules(pattern: str, cmd: str) -> None:
    assert verdict(ToolRules(deny=[f"bash({pattern})"]), cmd) == "deny"


ASKED = [
    ("git log *", "git log --output=F"),
    ("git log *", "git log --outp=F"),
    ("git diff *", "git diff --output=../F"),
    ("git shortlog *", "git shortlog --output=x"),
    ("git stash *", "git stash show --output=x"),
    ("git grep *", "git grep -nO'touch x;:' y"),
    ("git fetch *", "git fetch --upl=x ../other"),
    ("git *", "git config alias.x '!y'"),
    ("sort *", "sort -o F x"),
    ("sort *", "sort -ro F x"),
    ("sort *", "sort -oF x"),
    ("sort *", "sort --output=F x"),
    ("uniq *", "uniq a b"),
    ("xxd *", "xxd a b"),
    ("tee *", "tee x"),
    ("tree *", "tree -o x"),
    ("curl *", "curl -o f http://x"),
    ("curl *", "curl -sO http://x"),
    ("find *", "find . -fprint F"),
    ("find *", "find . -delete"),
    ("find *", "find . -exec rm {} ;"),
    ("awk *", "awk '{print > \"F\"}' x"),
    ("awk *", "awk '{ if ($1) print $2 >> $3 }' x"),
    ("sed *", "sed -i s/a/b/ x"),
    ("sed *", "sed -ni s/a/b/ x"),
    ("sed *", "sed -n 's/a/b/w F' x"),
    ("pip install *", "PIP_INDEX_URL=http://x pip install -r requirements.txt"),
    ("pip install *", "pip install --index-url http://x y"),
    ("pip install *", "pip install -t /x y"),
    ("ls *", "FOO=1 ls"),
    ("ls *", "ls > f"),
    ("make *", "make SHELL=x"),
    ("make *", "make CFLAGS=x"),
    ("make *", "make -f x"),
    ("make *", "make -C .. x"),
    ("npm test *", "npm test --script-shell=x"),
    ("env *", "env --s='touch x'"),
    ("python *", "python -c 'import os'"),
    ("python *", "python -m timeit x"),
    ("black *", "black --config x y"),
    ("tool* *", "tool-nobody-knows x"),
    ("mytool *", "mytool 'x; y'"),
]
ALLOWED = [
    ("git log *", "git log --oneline -5"),
    ("git log --output=* *", "git log --output=F HEAD"),
    ("git commit *", "git commit -m x"),
    ("git log *", "LANG=C git log"),
    ("ls *", "ls -la"),
    ("ls *", "x=1; ls $x"),
    ("mytool *", "mytool build"),
    ("sed -i *", "sed -i s/a/b/ f"),
    ("sort *", "sort -k2 x"),
    ("uniq *", "uniq -c a"),
    ("tee out.log", "tee out.log"),
    ("tee *", "tee /dev/null"),
    ("find *", "find . -name x"),
    ("find . -delete", "find . -delete"),
    ("awk *", "awk '$1 > 5 { print $2 }' x"),
    ("npm test", "npm test"),
    ("npm test *", "npm test -- --watch"),
    ("pip install *", "pip install -r requirements.txt"),
    ("make *", "make test V=1"),
    ("pytest *", "pytest -q"),
    ("cp *", "cp a b"),
    ("python *", "python x.py"),
]


def test_what_a_rule_does_not_say_is_asked_for() -> None:
    def law(pattern: str, cmd: str) -> None:
        assert verdict(ToolRules(allow=[f"bash({pattern})"], otherwise="ask"), cmd) == "ask"

    each_case(law, ASKED)


def test_what_a_rule_says_is_allowed() -> None:
    def law(pattern: str, cmd: str) -> None:
        assert verdict(ToolRules(allow=[f"bash({pattern})"], otherwise="ask"), cmd) == "allow"

    each_case(law, ALLOWED)


def test_variables_of_the_call_count_as_those_of_the_line() -> None:
    allowing = ToolRules(allow=["bash(pip install *)"], otherwise="ask")
    for name in ("PIP_INDEX_URL", "PIP_CONFIG_FILE", "SSL_CERT_FILE", "HTTPS_PROXY", "https_proxy", "SOMETHING"):
        assert verdict(allowing, "pip install x", env={name: "http://x"}) == "ask", name
    assert verdict(allowing, "pip install x", env={"NO_COLOR": "1"}) == "allow"
    assert verdict(NO_PUSH, "git log", env={"GIT_PAGER": "./x"}) == "deny"
    assert verdict(NO_PUSH, "git log", env={"X_TOOL": "git push"}) == "deny"
    assert verdict(NO_PUSH, "git log", env={"X_TOOL": "1"}) == "allow"
    assert verdict(NO_PUSH, "git log", env=["x"]) == "deny"


def test_rules_about_other_tools_allow_no_command() -> None:
    for rules in (ToolRules(allow=["read"], otherwise="ask"), ToolRules(allow=["read(x)", "fetch"], otherwise="ask")):
        assert verdict(rules, "rm -rf /") == "ask"
        assert verdict(rules, "ls") == "ask"


def test_arguments_that_cannot_be_read_are_covered_by_no_rule() -> None:
    rules = [Rule.of("bash(ls *)")]
    assert covers_line(rules, Call("bash", {"cmd": "ls"}))
    assert not covers_line(rules, Call("bash", {"cmd": "ls", RAW_ARGUMENTS: "{"}))


def test_as_many_commands_as_are_read() -> None:
    assert verdict(NO_PUSH, "ls;" * 1_000) == "allow"
    assert verdict(NO_PUSH, "ls;" * 1_001) == "deny"


def test_two_dashes_are_no_option() -> None:
    assert verdict(ToolRules(deny=["bash(rm --force *)"]), "rm -- x") == "allow"
    assert verdict(ToolRules(deny=["bash(rm --force *)"]), "rm --f x") == "deny"
    assert verdict(NO_PUSH, "git -c") == "deny"
