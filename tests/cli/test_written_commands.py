"""Commands that stand in the source as text: examples of the help, and a few constants.

Whatever looks at a recording is rendered from a view, so that it names the recording; what is
written by hand looks at the machine or changes something, and is a command that parses.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodescope
from nodescope.cli.command_list import COMMANDS
from nodescope.cli.main import build_parser

SOURCE = Path(nodescope.__file__).parent
_COMMAND = re.compile(rf"(?:sudo )?nodescope (?:{'|'.join(COMMANDS)})\b(?!,)[^`;|]*")
# A recording's, without `--archive`: only as an example of the help.
_OF_A_RECORDING = COMMANDS.keys() - {
    "record", "doctor", "lab", "freeze", "serve", "import", "mark", "fix", "experiment", "check",
}  # fmt: skip


def written(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield each command in a module's texts, and whether it is part of a command's help."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    helped = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg in ("examples", "description", "help")
        for inside in ast.walk(node.value)
    }
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if id(node) in docstrings or id(node) in inside:
            continue
        for command in _COMMAND.findall(_text(node)):
            yield command.strip(), id(node) in helped


def _text(node: ast.AST) -> str:
    """Return a string's text; what an f-string puts in is a number."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "7"
                       for part in node.values)  # fmt: skip
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


ALL = [
    (path, command, helped)
    for path in sorted(SOURCE.rglob("*.py"))
    if path.name != "reference.py"  # its headings are no commands
    for command, helped in written(path)
]


def test_some_are_found() -> None:
    assert len(ALL) > 80
    assert sum(not helped for _, _, helped in ALL) > 8


@pytest.mark.parametrize(("path", "command", "helped"), ALL, ids=lambda each: str(each)[-60:])
def test_a_command_in_the_source_parses(path: Path, command: str, helped: bool) -> None:
    typed = command.partition(" > ")[0]  # a shell takes the rest
    words = shlex.split(typed.removeprefix("sudo ").replace("(", "").rstrip(" :,)…"))[1:]
    if not helped:
        assert words[0] not in _OF_A_RECORDING, f"{path}: use records.view_forms.render_command"
    if "--help" in words or (helped and len(words) == 1):
        return
    if words[0] in ("fix", "experiment") and len(words) <= 2:
        return  # named, not to be typed so: most take a plan
    args = build_parser(words).parse_args(words)
    assert hasattr(args, "run")
