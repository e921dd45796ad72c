"""Cgroups of a test's own, one in every hierarchy of this machine, for processes it starts."""

from __future__ import annotations

import os
from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
# A cgroup gets as much of the cores as all processes outside together, and after a sleep waits
# for them: what starts many short processes in one would take twenty times as long on a busy
# machine.
_PRIORITY = {"cpu.shares": "102400", "cpu.weight": "10000"}


def make_cgroups(name: str) -> list[Path]:
    """Make a cgroup of that name in every hierarchy; whoever is in it has its cores first."""
    roots = [_CGROUPS] if (_CGROUPS / "cgroup.controllers").exists() else sorted(_CGROUPS.iterdir())
    made = []
    for root in roots:
        if root.is_symlink() or not (root / "cgroup.procs").exists():
            continue
        cgroup = root / name
        cgroup.mkdir()
        made.append(cgroup)
        for key in ("cpuset.cpus", "cpuset.mems"):  # without them it takes no process
            if (root / key).exists() and (cgroup / key).exists():
                (cgroup / key).write_text((root / key).read_text())
        for key, value in _PRIORITY.items():
            if (cgroup / key).exists():
                (cgroup / key).write_text(value)
    return made


def join_cgroups(cgroups: list[Path]) -> None:
    """Move this process into them."""
    for cgroup in cgroups:
        (cgroup / "cgroup.procs").write_text("0")


def remove_cgroups(cgroups: list[Path]) -> bool:
    """Remove them with all below; return False while something still lives in one."""
    for top in cgroups:
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass  # gone already
            except OSError:
                return False
    return True
