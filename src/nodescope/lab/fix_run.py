"""Fix a scenario while it still runs, by the commands that a person types."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.lab.scenario import ScenarioRun
from nodescope.quantities import SECOND_NS, format_duration

VALIDATE_S = 60


@dataclass(frozen=True, slots=True)
class FixCodes:
    """The exit codes of the commands, in their order; None: not run."""

    plan: int
    apply: int | None = None
    validate: int | None = None
    undo: int | None = None


def fix_while_it_runs(
    stage: ScenarioRun, archive: Path, validate_s: int, say: Callable[[str], None]
) -> FixCodes:
    """Run the four commands against the lab's own systemd; the plan stays beside the archive."""
    environment = dict(os.environ) | {"NODESCOPE_ARCHIVE": str(archive)}
    if stage.guest is not None:
        environment |= {
            "NODESCOPE_SYSTEMD_BUS": stage.guest.bus,
            "NODESCOPE_JOURNAL": str(stage.guest.journal),
        }
    path = archive.with_name(f"{archive.name}.plan.json")

    def fix(*arguments: str) -> int:
        return _run(arguments, environment, say)

    planned = fix("plan", "--output", str(path))
    if planned != 0:
        return FixCodes(planned)
    consents = [word for owner in _owners(path) for word in ("--consent", owner)]
    applied = fix("apply", str(path), "--yes", *consents)
    lasting = format_duration(validate_s * SECOND_NS)
    validated = fix("validate", str(path), "--for", lasting) if applied == 0 else None
    return FixCodes(planned, applied, validated, fix("undo", str(path), "--yes"))


def _owners(path: Path) -> Sequence[str]:
    """Return whose consent a plan asks for: in the lab all files are the lab's own."""
    return sorted({step["consent"] for step in json.loads(path.read_text())["steps"]} - {""})


def _run(
    arguments: Sequence[str], environment: Mapping[str, str], say: Callable[[str], None]
) -> int:
    say(f"$ nodescope fix {' '.join(arguments)}")
    command = [sys.executable, "-m", "nodescope.cli.main", "fix", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode
