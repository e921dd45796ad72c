"""What the figures were taken on."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent


def read_facts() -> dict[str, Any]:
    """Date, commit, machine and software, each as one line for a person."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": read_commit(),
        "machine": read_machine(),
        "software": read_software(),
        "load": Path("/proc/loadavg").read_text().split()[0],
    }


def read_machine() -> str:
    """Processor, cores, memory, kernel."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({model}), {memory:.1f} GiB, Linux {platform.release()}"


def read_software() -> str:
    """Interpreter, the packages that do the work, and the peer."""
    packages = (f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "pyarrow"))
    perf = "no perf"
    if shutil.which("perf"):
        shown = subprocess.run(["perf", "--version"], capture_output=True, text=True, check=False)
        perf = shown.stdout.strip().replace("perf version", "perf")
    return ", ".join([f"Python {platform.python_version()}", *packages, perf])


def read_commit() -> str:
    """The commit, and whether what ran differs from it."""

    def git(*words: str) -> str:
        run = subprocess.run(
            ["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=False
        )
        return run.stdout.strip()

    commit = git("rev-parse", "--short", "HEAD") or "no commit"
    return f"{commit} with changes" if git("status", "--porcelain", "src") else commit
