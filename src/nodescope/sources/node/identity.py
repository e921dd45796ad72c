"""Which machine this is: name, kernel, boot, size. Facts that a recording starts with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nodescope.errors import SourceError, UsageError, source_error
from nodescope.quantities import parse_cpu_list
from nodescope.sources.kernel_files import read_text


def read_node(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> Mapping[str, object]:
    """Who recorded: missing facts are None."""
    memory = next(
        (
            int(line.split()[1]) * 1024
            for line in (read_text(proc / "meminfo") or "").splitlines()
            if line.startswith("MemTotal:")
        ),
        None,
    )
    return {
        "name": read_text(proc / "sys/kernel/hostname") or os.uname().nodename,
        "boot_id": read_text(proc / "sys/kernel/random/boot_id"),
        "kernel": read_text(proc / "sys/kernel/osrelease") or os.uname().release,
        "machine": os.uname().machine,
        "cpus": len(read_online_cpus(sys)),
        "memory_bytes": memory,
        "ticks_per_second": os.sysconf("SC_CLK_TCK"),
    }


def read_online_cpus(sys: Path = Path("/sys")) -> list[int]:
    """The cores that are online now."""
    path = sys / "devices/system/cpu/online"
    try:
        cpus = parse_cpu_list(path.read_text("ascii"))
    except OSError as error:
        raise source_error(path, error) from error
    except (UsageError, UnicodeDecodeError) as error:
        raise SourceError(path, str(error)) from error
    return cpus


def read_core_lives(sys: Path = Path("/sys")) -> dict[int, int]:
    """The cores that are online, each with a number that is another after it was offline.

    Events of a core are dead once it was offline, however shortly, and nothing says so
    (no POLLHUP, enabling them succeeds). But its `topology` folder is made anew.
    """
    folder = f"{sys}/devices/system/cpu"
    lives = {}
    for cpu in read_online_cpus(sys):
        try:
            lives[cpu] = os.stat(f"{folder}/cpu{cpu}/topology").st_ino
        except OSError:
            lives[cpu] = 0  # no such folder on this architecture
    return lives
