from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nodescope as package
from nodescope.cli import doctor
from nodescope.cli.command_list import COMMANDS, GROUPS
from nodescope.cli.main import build_parser
from nodescope.cli.reference import render_reference
from nodescope.errors import SourceDenied

Nodescope = Callable[..., Any]
DOCS = Path(__file__).parents[2] / "docs"


def _raise(error: BaseException) -> Callable[[argparse.Namespace], int]:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_examples(command: str, nodescope: Nodescope) -> None:
    with pytest.raises(SystemExit) as ended:
        nodescope(command, "--help")
    assert ended.value.code == 0


def test_help_shows_examples(
    capsys: pytest.CaptureFixture[str], nodescope_process: Nodescope
) -> None:
    result = nodescope_process("record", "--help")
    assert result.code == 0
    assert "examples:\n  nodescope record" in result.out


def test_help_groups_the_commands_and_fits_a_screen(nodescope_process: Nodescope) -> None:
    shown = nodescope_process("--help").out.splitlines()
    assert len(shown) <= 40
    assert max(map(len, shown)) <= 80
    assert [line for line in shown if line.endswith(":") and line != "options:"] == [
        f"{title}:" for title in GROUPS
    ]
    for name, summary in COMMANDS.items():
        assert any(line.split(maxsplit=1) == [name, summary] for line in shown)


def test_version(nodescope_process: Nodescope) -> None:
    result = nodescope_process("--version")
    assert (result.code, result.out) == (0, f"nodescope {package.__version__}\n")


def test_help_and_version_import_nothing_heavy(nodescope_process: Nodescope) -> None:
    wrapper = (
        "try: nodescope.cli.main.main()\n"
        "finally: print(sorted({'numpy', 'pyarrow', 'asyncio'} & set(sys.modules)))"
    )
    for option in ("--help", "--version"):
        assert nodescope_process(option, wrapper=wrapper).out.endswith("\n[]\n")
    assert nodescope_process("record", "--help", wrapper=wrapper).out.endswith("\n[]\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command given"),
        (["recrod"], "invalid choice: 'recrod'"),
        (["record", "--duration", "3x"], "argument --duration: not a duration: '3x'"),
        (["record", "--duration", "0s"], "argument --duration: must be longer than zero"),
        (["record", "--ring-size", "big"], "argument --ring-size: not a size"),
        (["record", "--cpu", "5-1"], "argument --cpu: not a list of CPUs"),
        (["record", "--cpu", ""], "argument --cpu: no CPU named"),
        (["record", "--budget-cpu", "1"], "argument --budget-cpu: not a percentage"),
        (["record", "--budget-cpu", "nan%"], "argument --budget-cpu: not a percentage"),
        (["record", "--frequency", "0"], "argument --frequency: not a whole number above zero"),
        (["record", "--quiet", "--verbose"], "not allowed with argument"),
        (["status", "--nonsense"], "unrecognized arguments: --nonsense"),
    ],
)
def test_usage_errors(arguments: list[str], message: str, nodescope: Nodescope) -> None:
    result = nodescope(*arguments)
    assert result.code == 2
    assert result.out == ""
    lines = result.err.splitlines()
    assert lines[-2].startswith("nodescope: error: ")
    assert message in lines[-2]
    assert lines[-1].startswith("hint: ")


def test_an_error_is_a_message_and_a_hint(
    nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = SourceDenied("/proc/kallsyms", "hidden", hint="try `nodescope doctor`")
    monkeypatch.setattr(doctor, "run", _raise(error))
    result = nodescope("doctor")
    assert result.code == 2
    assert result.err == (
        "nodescope: error: /proc/kallsyms: hidden\nhint: try `nodescope doctor`\n"
    )


def test_ctrl_c_ends_with_130(nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "run", _raise(KeyboardInterrupt()))
    assert nodescope("doctor").code == 130


def test_a_defect_is_not_mistaken_for_findings(
    nodescope: Nodescope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "run", _raise(ZeroDivisionError("oh")))
    result = nodescope("doctor")
    assert result.code == 2
    assert "Traceback" in result.err
    assert "a defect in Nodescope" in result.err


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "doctor"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_the_reference_is_current() -> None:
    assert (DOCS / "commands.md").read_text() == render_reference(), "run `make docs`"


def test_former_spellings_are_still_accepted() -> None:
    """Issue 13, point 17: one name for one thing; scripts with the old ones go on."""
    record = build_parser(["record"])
    assert record.parse_args(["record", "--cpus", "0-1"]).cpu == [0, 1]
    assert record.parse_args(["record", "--cpu", "0-1"]).cpu == [0, 1]
    flame = build_parser(["flame"])
    assert flame.parse_args(["flame", "--merge", "cgroup"]).by == "cgroup"
    assert flame.parse_args(["flame"]).by == "comm"
    assert "--merge" not in flame.format_help()


def test_the_package_can_be_run_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "nodescope", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"nodescope {package.__version__}\n"
