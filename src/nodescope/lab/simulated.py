"""The only parts of the lab that are not real: a driver's lines, and whose job it was."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

KMSG = Path("/dev/kmsg")
NIC = "labens5"
GIVEN_UP_S = 5.2  # without a completion: after five seconds, and the checks are not all at once
_BUS = "0000:20:03.0"


def reset_lines(queue: int, cpu: int, held_s: float) -> list[tuple[float, str]]:
    """Return the lines that ENA 2.17 logs of a starved queue and its reset, each after a pause.

    The driver's timer notices a wanted reset once a second; here it takes less.
    """
    prefix = f"<4>ena {_BUS} {NIC}: "
    microseconds = round(held_s * 1e6)
    paused = (
        f"{prefix}TX q {queue} is paused for too long (threshold 5000000). usecs since napi "
        f"{microseconds}. napi scheduled: 1. napi CPU: {cpu}. msecs since interrupt: 12"
    )
    return [
        (0.0, paused),
        (0.2, f"{prefix}Trigger reset is on"),
        (0.6, f"{prefix}Device reset completed, status: 0, Driver info: nodescope lab, simulated"),
    ]


def write_kmsg(lines: Iterable[tuple[float, str]]) -> None:
    """Write lines to the kernel's log as root may; the log says they are a user's."""
    with KMSG.open("wb", buffering=0) as log:
        for pause_s, line in lines:
            time.sleep(pause_s)
            log.write(line.encode() + b"\n")


def job_failed(archive: str, job: str, message: str) -> None:
    """Tell the recorder, as a job's own hook would."""
    subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "mark", message, "--kind", "job_failed",
         "--subject", job, "--archive", archive],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
