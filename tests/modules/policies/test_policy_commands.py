"""Rules about commands: `allow` covers what it names alone; `deny` finds what is plain, and everyday lines pass."""

import json
from pathlib import Path

import pytest
from each_case import each_case

from refold.modules.agent import ToolCall
from refold.modules.policies import ToolRules
from refold.modules.tools import use_workspace

COMMANDS = json.loads(Path(__file__).with_name("shell_commands.json").read_text())
HOSTILE, HARMLESS = COMMANDS["hostile"], COMMANDS["harmless"]
"""Lines that run `git push` in some hidden way; and lines that do not run it."""
EVERYDAY = Path(__file__).with_name("everyday.txt").read_text().splitlines()
"""Lines as projects in many languages have them in their Makefiles and READMEs."""

NO_PUSH = ToolRules(deny=["bash(git push *)"], otherwise="allow")
USUAL = ToolRules(
    allow=[
        *("bash(ls *)", "bash(cat *)", "bash(head *)", "bash(tail *)", "bash(wc *)", "bash(grep *)", "bash(echo *)"),
        *("bash(pwd)", "bash(git status)", "bash(git diff *)", "bash(git log *)", "bash(git show *)", "bash(rg *)"),
        *("bash(find *)", "bash(pytest *)", "bash(ruff check *)", "bash(ruff format *)", "bash(mypy *)"),
        *("bash(npm test *)", "bash(make test)", "bash(cargo build *)", "bash(cargo test *)", "bash(cargo check *)"),
        *("bash(go test *)", "bash(mkdir *)", "bash(which *)", "bash(sed *)"),
    ],
    otherwise="ask",
)
"""A list that allows 27 kinds of commands, as a person would write it."""


def bash(cmd: str, **more: object) -> ToolCall:
    return ToolCall.of("c", "bash", {"cmd": cmd, **more})


def verdict(rules: ToolRules, cmd: str, **more: object) -> str:
    return rules.verdict(bash(cmd, **more)).action


def allows(pattern: str, cmd: str, **more: object) -> bool:
    return verdict(ToolRules(allow=[f"bash({pattern})"], otherwise="ask"), cmd, **more) == "allow"


def denies(pattern: str, cmd: str, **more: object) -> bool:
    return verdict(ToolRules(deny=[f"bash({pattern})"]), cmd, **more) == "deny"


def test_no_hidden_command_is_allowed() -> None:
    assert len(set(HOSTILE)) > 450
    assert [cmd for cmd in HOSTILE if verdict(USUAL, cmd) != "ask"] == []


def test_everyday_lines_are_not_refused() -> None:
    assert len(EVERYDAY) > 800
    assert [line for line in EVERYDAY if verdict(NO_PUSH, line) != "allow"] == []


def test_lines_that_run_something_else_are_hardly_ever_refused() -> None:
    """They have the words of the rule in a line that is not plain, such as `echo "git push" > f; $x`."""
    assert len(set(HARMLESS)) > 200
    refused = [cmd for cmd in HARMLESS if verdict(NO_PUSH, cmd) != "allow" and "push" not in cmd]
    assert refused == []


ALLOWED = [
    ("ls *", "ls"), ("ls *", "ls -la"), ("ls *", "ls; ls"), ("ls *", "ls 2>/dev/null"), ("ls *", "ls 2>&1"),
    ("ls *", "ls *.py"), ("ls *", "ls # all of them"), ("ls *", "ls \\\n -a"), ("ls *", "cd . && ls"),
    ("git log *", "git log HEAD~3"), ("git log --oneline *", "git log --oneline HEAD"),
    ("git log --output=* *", "git log --output=F HEAD"), ("git log **", "git log --oneline -5"),
    ("git commit -m *", "git commit -m 'a; b'"), ("mytool *", "mytool build"), ("sed -i **", "sed -i s/a/b/ f"),
    ("find . -delete", "find . -delete"), ("npm test", "npm test"), ("make *", "make test"), ("make **", "make V=1"),
    ("cp *", "cp a b"), ("python x.py", "python x.py"), ("python -m pytest **", "python -m pytest -q -k 'a or b'"),
    ("ls *", "ls\n\nls"), ("ls *", "ls &&\n\nls"),
    ("make test && make lint", "make test && make lint"), ("for i in 1; do ls; done", "for i in 1; do ls; done"),
]  # fmt: skip
ASKED = [
    # options and settings that the rule does not name
    ("git log *", "git log --output=F"), ("git log *", "git log -c x"), ("git *", "git -c a=b log"),
    ("git grep *", "git grep -nO'touch x;:' y"), ("git fetch *", "git fetch --upl=x ../other"),
    ("sort *", "sort -o F x"), ("uniq *", "uniq -c a"), ("curl *", "curl -o f http://x"), ("find *", "find . -delete"),
    ("find *", "find . -exec rm {} ;"), ("make *", "make SHELL=x"), ("make *", "make -f x"), ("gcc *", "gcc @args"),
    ("pip install *", "pip install --index-url http://x y"), ("mytool *", "mytool ../../../dev/stdin"),
    ("mytool *", "mytool /proc/self/fd/0"), ("mytool *", "mytool *"), ("vim *", "vim +x f"),
    # programs that run others, or what they read
    ("env *", "env ls"), ("xargs *", "ls | xargs ls"), ("timeout *", "timeout 5 ls"), ("python *", "python x.py"),
    ("python3.11 *", "python3.11 x.py"), ("bash *", "bash x.sh"), ("awk *", "awk '{print}' x"),
    ("sh *", "echo ls | sh"),
    ("/usr/bin/env *", "/usr/bin/env ls"), ("tar *", "tar cIf 'touch x' a.tar ."), ("sudo *", "sudo ls"),
    ("test *", "test -v 'a[$(ls)]'"), ("unset *", "unset 'a[$(ls)]'"), ("let *", "let 'a[$(ls)]'"),
    # lines that are not plain, and parts that the rule does not name
    ("ls *", "FOO=1 ls"), ("ls *", "ls > f"), ("ls *", "ls >> /etc/passwd"), ("ls *", "ls &> f"),
    ("ls *", "ls $(rm x)"),
    ("ls *", "ls `rm x`"), ("ls *", "ls $x"), ("ls *", "(ls)"), ("ls *", "ls &"), ("ls *", "ls <(rm x)"),
    ("ls *", "ls {a,b}"), ("ls *", "if ls; then rm x; fi"), ("ls *", "ls | wc"), ("ls *", "ls; rm x"), ("ls *", "./ls"),
    ("ls *", "ls && "), ("ls *", "ls\n\trm x"), ("ls *", "ls\v"), ("ls *", "ls <<A\nA\nrm x"), ("ls *", 'ls "$x"'),
    ("ls *", "ls \\; rm x"), ("ls *", "ls #\nrm x"), ("ls *", ""), ("ls *", "[ -v x ]"),
    ("ls *", "; ls"), ("ls *", "> f; ls"), ("ls *", "ls | | ls"),
    ("git status", "git status x"), ("tool* *", "time x"), ("make test && make lint", "make test && make lint x"),
    ("make test", "make test\v"),
    # moving elsewhere
    ("ls *", "cd .. && ls"), ("ls *", "cd ~ && ls"), ("ls *", "cd - && ls"), ("ls *", "cd -P && ls"),
    ("ls *", "cd x*; ls"),
    ("ls *", "cd a && cd b && ls"), ("ls *", "ls && cd a"), ("ls *", "cd a"), ("ls *", "cd . > f && ls"),
]  # fmt: skip


def test_a_rule_allows_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    def is_allowed(pattern: str, cmd: str) -> None:
        assert allows(pattern, cmd)

    def is_asked(pattern: str, cmd: str) -> None:
        assert not allows(pattern, cmd)

    with use_workspace(tmp_path):
        each_case(is_allowed, ALLOWED)
        each_case(is_asked, ASKED)


def test_each_part_of_a_line_needs_a_rule() -> None:
    assert verdict(USUAL, "git diff HEAD | head -50 && ls -la 2>&1; pwd") == "allow"
    assert verdict(USUAL, "git diff HEAD | tee x") == "ask"


def test_variables_and_input_of_a_call_are_not_covered() -> None:
    for more in ({"env": {"LD_PRELOAD": "x"}}, {"env": {"NO_COLOR": "1"}}, {"input": "x"}, {"env": ["x"]}):
        assert not allows("git status", "git status", **more)
    assert allows("git status", "git status", env={}, input="")


def test_a_redirect_to_a_file_needs_a_rule_for_write(tmp_path: Path) -> None:
    rules = ToolRules(allow=["bash(ls *)", "write(out/**)", "write(.git/**)"], otherwise="ask")
    (tmp_path / ".git").mkdir()
    (tmp_path / "away").symlink_to("/tmp")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "link").symlink_to("/tmp/elsewhere")
    with use_workspace(tmp_path):
        assert verdict(rules, "ls > out/a.txt; ls >> out/b.txt") == "allow"
        for cmd in ("ls > a.txt", "ls > out/../a", "ls > /out/a", "ls > away/x", "ls > out/link", "ls > .git/config",
                    "cd out && ls > out/a"):  # fmt: skip
            assert verdict(rules, cmd) == "ask", cmd


def test_rules_about_other_tools_allow_no_command() -> None:
    for rules in (ToolRules(allow=["read"], otherwise="ask"), ToolRules(allow=["read(x)", "fetch"], otherwise="ask")):
        assert verdict(rules, "ls") == "ask"


@pytest.mark.parametrize(
    ("pattern", "denied", "free"),
    [
        (
            "git push *",
            ["git push", "git  push x", "/usr/bin/git push", "git -C . push", "git -c a=b --no-pager push",
             "g''it push",
             "ls; git push", "ls | xargs git push", "bash -c 'git push'", "env git push", "sudo bash -c 'ls; git push'",
             "echo $(git push)", "FOO=1 git push", "if true; then git push; fi", "git \\\n push",
             "timeout 5 git 'push'"],
            ["git status", "git stash push", "git log --grep push", "echo git; echo push", "git config push.default x",
             "git commit -m 'push it'", "echo 'git push'", "ls $(pwd)", "echo $HOME", "cat <<A\nx\nA"],
        ),
        (
            "rm -rf *",
            ["rm -rf /", "rm -fr x", "rm -r -f x", "rm x -rf", "rm --recursive --force x", "rm -Rf x",
             "rm --rec --fo x",
             "sudo rm -rf x", "rm -rfv x", "bash -c 'rm -rf x'"],
            ["rm x", "rm -f x", "rm -r x", "rmdir x", "ls -rf", "git rm -r --cached x"],
        ),
        ("curl", ["curl x", "curl", "x=$(curl y)", "/usr/bin/curl -s z", "wget x | xargs curl"], ["wget x", "ls curl"]),
        ("npm publish", ["npm publish --tag x", "npm --loglevel silent publish", 'npm "pub"lish'], ["npm test"]),
        ("docker run * --privileged", ["docker run -it x --privileged"], ["docker ps", "docker run x"]),
        ("kubectl delete *-prod", ["kubectl delete web-prod",
        "kubectl -n x delete y-prod"], ["kubectl delete web-test"]),
        ("rm --force *", ["rm --f x"], ["rm -- x", "rm --version"]),
        ("*push*", ["git push", "x push y", "npm push"], ["git status", "ls"]),
    ],
)  # fmt: skip
def test_a_rule_that_denies_finds_its_command(pattern: str, denied: list[str], free: list[str]) -> None:
    assert [cmd for cmd in denied if not denies(pattern, cmd)] == []
    assert [cmd for cmd in free if denies(pattern, cmd)] == []


def test_the_reason_names_what_was_found() -> None:
    assert NO_PUSH.verdict(bash("ls; git -C x push")).why == "bash(git push *): it runs 'git -C x push'"
    assert NO_PUSH.verdict(bash("$(git push)")).why == (
        "bash(git push *): it has '$(git push)', and its text has 'git' and 'push'"
    )


def test_other_arguments_of_a_call_and_python_code_are_searched() -> None:
    assert denies("git push *", "make", env={"X": "git push"})
    assert denies("git push *", "bash", input="git push")
    assert not denies("git push *", "cat", input="git push")
    code = {"ls": "allow", "subprocess.run(['git', 'push'])": "deny"}
    assert {text: NO_PUSH.verdict(ToolCall.of("c", "python", {"code": text})).action for text in code} == code


def test_arguments_that_cannot_be_read_are_denied_and_never_allowed() -> None:
    for arguments in ('{"cmd": ', '{"cmd": ["git", "push"]}', '{"cmd": 3}', '{"cmd": "ls", "cmd": "git push"}'):
        call = ToolCall.of("c", "bash", arguments)
        assert NO_PUSH.verdict(call).action == "deny"
        assert USUAL.verdict(call).action == "ask"


def test_long_and_deep_lines_are_not_plain() -> None:
    for cmd in ("(" * 5_000, "$(" * 5_000, "ls " + "x" * 50_000, "{ " * 3_000, "`" * 4_001, "a|" * 5_000, "'" * 9_999):
        assert verdict(USUAL, cmd) == "ask"
    options = "-P " * 900
    assert denies("git push *", f"git {options} push")
    assert not denies("git push *", f"git {options} status {options}")
