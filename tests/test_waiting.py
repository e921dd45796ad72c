from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.waiting import wait_for

# Leaves a file behind, says why it ends, and ends.
_ENDS = """
import pathlib, sys
pathlib.Path(sys.argv[1]).touch()
sys.exit("no room for a segment")
"""


def test_a_process_that_ended_is_noticed_at_once_with_its_code_and_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        log.open("wb") as said,
        subprocess.Popen([sys.executable, "-c", _ENDS, tmp_path / "made"], stderr=said) as process,
    ):
        began = time.monotonic()
        with pytest.raises(AssertionError) as raised:
            wait_for(lambda: False, "a segment is sealed", 250.0, process=process, log=log)
    assert time.monotonic() - began < 200
    assert "ended with exit code 1 before: a segment is sealed" in str(raised.value)
    assert "no room for a segment" in str(raised.value)


def test_what_a_process_did_just_before_its_end_counts(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with subprocess.Popen(
        [sys.executable, "-c", _ENDS, made], stderr=subprocess.DEVNULL
    ) as process:
        process.wait()
        assert wait_for(made.exists, "the file is made", process=process)


def test_what_never_comes_is_named_with_the_end_of_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 10_000 + "still starting\n")
    with pytest.raises(AssertionError, match="after 0 s still not: it answers") as raised:
        wait_for(lambda: False, "it answers", 0.0, log=log)
    assert "still starting" in str(raised.value)
    assert len(str(raised.value)) < 5000
