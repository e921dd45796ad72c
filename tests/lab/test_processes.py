from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodescope.errors import UsageError
from nodescope.lab.processes import check_alive, sleep_beside, wait_for_success, wait_until_ready

_SAYS_WHY_AND_ENDS = "import sys; sys.exit('no cgroup for me')"


def start(script: str, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", script], stderr=errors)


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with start("import time; time.sleep(1000)") as process:
        yield process
        process.kill()


def test_a_process_that_ends_before_it_is_ready_is_noticed_with_what_it_reported(
    tmp_path: Path,
) -> None:
    log = tmp_path / "log"
    said = "the guest ended with exit code 1: no cgroup for me"
    with (
        log.open("wb") as errors,
        start(_SAYS_WHY_AND_ENDS, errors.fileno()) as process,
        pytest.raises(UsageError, match=said),
    ):
        wait_until_ready(process, "the guest", lambda: None, log=log)


def test_the_first_true_answer_is_returned(sleeper: subprocess.Popen[bytes]) -> None:
    answers = iter([None, 0, 812])
    assert wait_until_ready(sleeper, "the guest", lambda: next(answers)) == 812


def test_who_fails_is_named() -> None:
    with (
        start(_SAYS_WHY_AND_ENDS) as process,
        pytest.raises(UsageError, match="lab-leaker ended with exit code 1"),
    ):
        wait_for_success(process, "lab-leaker")


def test_a_long_sleep_ends_with_the_process_beside_it(sleeper: subprocess.Popen[bytes]) -> None:
    check_alive({"the recorder": sleeper})
    sleep_beside({"the recorder": sleeper}, 0.1)
    began = time.monotonic()
    sleeper.kill()
    with pytest.raises(UsageError, match="the recorder ended with exit code -9 during the run"):
        sleep_beside({"the recorder": sleeper}, 250.0)
    assert time.monotonic() - began < 200
