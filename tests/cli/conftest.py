from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import run as run_process

import pytest

from nodescope.cli.main import main

IMPORTS = "import sys, nodescope.cli.main\n"
MAIN = "sys.exit(nodescope.cli.main.main())\n"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Nodescope = Callable[..., Result]


@pytest.fixture
def nodescope(capfd: pytest.CaptureFixture[str]) -> Nodescope:
    """Run a command in this process."""

    def call(*arguments: str | Path) -> Result:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def nodescope_process() -> Nodescope:
    """Run a command as a process of its own, or code of the test's own as `wrapper`."""

    def call(*arguments: str | Path, wrapper: str = MAIN) -> Result:
        done = run_process(
            [sys.executable, "-c", IMPORTS + wrapper, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call
