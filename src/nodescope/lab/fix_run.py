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


def plan_while_it_runs(
    stage: ScenarioRun, archive: Path, say: Callable[[str], None], *, show: bool = False
) -> int:
    """Make the plan against the lab's own systemd; it stays beside the archive."""
    arguments = ("plan", "--output", str(plan_path(archive)))
    return _run(arguments, _environment(stage, archive), say, show=show)


def fix_while_it_runs(
    stage: ScenarioRun, archive: Path, validate_s: int, say: Callable[[str], None]
) -> FixCodes:
    """Plan, apply, validate and undo against the lab's own systemd."""
    environment, path = _environment(stage, archive), str(plan_path(archive))
    planned = plan_while_it_runs(stage, archive, say, show=True)
    if planned != 0:
        return FixCodes(planned)
    owners = _owners(plan_path(archive), stage)
    consents = [word for owner in owners for word in ("--consent", owner)]
    applied = _run(("apply", path, "--yes", *consents), environment, say)
    validated = None
    if applied == 0:
        lasting = format_duration(validate_s * SECOND_NS)
        validated = _run(("validate", path, "--for", lasting), environment, say)
    return FixCodes(planned, applied, validated, _run(("undo", path, "--yes"), environment, say))


def describe_failures(codes: FixCodes) -> list[str]:
    """Return a sentence for each command of a fix that did not work; none if all did."""
    if codes.plan != 0:
        return ["there was nothing that a plan may do: nothing was changed"]
    failures = []
    if codes.apply != 0:
        failures.append("the plan was not applied as a whole")
    elif codes.validate != 0:
        failures.append("the fix was not proven: the verdict above says why")
    if codes.undo != 0:
        failures.append("not everything was undone: `nodescope fix status` lists what is left")
    return failures


def plan_path(archive: Path) -> Path:
    """Return where the plan of a run is left."""
    return archive.with_name(f"{archive.name}.plan.json")


def _environment(stage: ScenarioRun, archive: Path) -> Mapping[str, str]:
    environment = dict(os.environ) | {"NODESCOPE_ARCHIVE": str(archive)}
    if stage.guest is None:
        return environment
    return environment | {
        "NODESCOPE_SYSTEMD_BUS": stage.guest.bus,
        "NODESCOPE_JOURNAL": str(stage.guest.journal),
    }


def _owners(path: Path, stage: ScenarioRun) -> Sequence[str]:
    """Return the folders a plan asks consent for that this run made; others' are not the lab's."""
    asked = {step["consent"] for step in json.loads(path.read_text())["steps"]}
    mine = stage.ground.name
    return sorted(each for each in asked if f"/{mine}-" in each or f"/{mine}/" in f"{each}/")


def _run(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    say: Callable[[str], None],
    *,
    show: bool = True,
) -> int:
    say(f"$ nodescope fix {' '.join(arguments)}")
    command = [sys.executable, "-m", "nodescope.cli.main", "fix", *arguments]
    output = None if show else subprocess.DEVNULL
    return subprocess.run(command, env=environment, stdout=output, check=False).returncode
