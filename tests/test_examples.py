"""The examples in README and docs print what they show (`make docs` renews them)."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import nodescope
from nodescope.cli.command_list import COMMANDS
from nodescope.cli.main import build_parser

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# Shown as they were printed by a machine with such units and cgroups: no recording has them.
_LIVE = {"zombies", "audit", "check"}


def _check(path: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(Path(nodescope.__file__).parents[1])}
    command = [sys.executable, str(ROOT / "tools/examples"), "--check", str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_is_shown(page: Path) -> None:
    result = _check(page)
    assert result.returncode == 0, result.stdout + result.stderr


def test_an_example_that_is_not_current_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```console\n$ nodescope top --limit 1\nnothing of the kind\n```\n")
    result = _check(page)
    assert result.returncode == 1
    assert "-nothing of the kind" in result.stdout


def _written() -> list[tuple[str, str]]:
    """Return the commands in fenced blocks of all pages, each with its page."""
    found = []
    for page in PAGES:
        for language, block in _FENCED.findall(page.read_text()):
            for line in block.splitlines():
                start = line.removeprefix("$ ").removeprefix("sudo ")
                if start.split(" ", 2)[1:2] and start.startswith("nodescope "):
                    if line.startswith("$ ") and language != "console":
                        assert start.split()[1] in _LIVE, f"{page.name}: mark as console: {line}"
                    found.append((page.name, start))
    return found


@pytest.mark.parametrize(("page", "command"), _written())
def test_a_command_in_the_docs_parses(page: str, command: str) -> None:
    text = re.split(r"\s{2,}| #| \| | > ", command)[0]
    words = shlex.split(text.replace("[window] [filters]", "").replace("FORMAT", "folded"))[1:]
    assert words[0] in COMMANDS
    if "--help" not in words:
        assert hasattr(build_parser(words).parse_args(words), "run")
