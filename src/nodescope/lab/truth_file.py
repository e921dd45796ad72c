"""The truth about an archive: a file beside it, which no diagnosis reads."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab.scenario import LastingTruth, Truth


def truth_path(archive: Path) -> Path:
    """Where the truth about an archive lies: beside it."""
    return archive.with_name(f"{archive.name}.truth.json")


def write_truth(archive: Path, truth: Truth) -> None:
    """Leave it there."""
    truth_path(archive).write_text(json.dumps(asdict(truth), indent=2) + "\n")


def read_truth(archive: Path) -> Truth:
    """Read the truth that was left there."""
    content = json.loads(truth_path(archive).read_text())
    words = ("roots", "root_kinds", "symptoms", "mechanisms", "never", "well", "simulated")
    lasting = tuple(
        LastingTruth(tuple(each["kinds"]), each["owner_kind"], each["owner"])
        for each in content.get("conditions", ())
    )
    # A truth of an earlier version lacks what was not asked then.
    lists = {each: tuple(content.get(each, ())) for each in words}
    return Truth(**content | lists | {"conditions": lasting})


def require_new(archive: Path) -> None:
    """Refuse to record into a folder that has something in it."""
    if archive.exists() and any(archive.iterdir()):
        raise UsageError(f"{archive} is not empty", hint="--record takes a new folder")
