"""Moments that people and programs mark, on their way into a recording.

`nodescope mark` leaves a file in `marks/`; the recorder of the archive tells it as
an event and removes the file once the event is on disk. Without a recorder it
stays for the next one, and readers may look at it meanwhile.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nodescope.archive.files import (
    archive_error,
    make_directory,
    read_json,
    replace_json,
    translated,
)
from nodescope.archive.layout import MARKS_DIRECTORY, read_archive_info
from nodescope.errors import ArchiveError
from nodescope.records.details import fields_of, parse_details
from nodescope.records.event import Event
from nodescope.records.event_details import FixStepDetails, JobDetails, MarkDetails
from nodescope.records.json import Json, JsonObject

KINDS: dict[str, type[MarkDetails]] = {
    "mark": MarkDetails,
    "job_failed": JobDetails,
    "fix_step": FixStepDetails,
}
MOST_CHARACTERS = 4096


@dataclass(frozen=True, slots=True)
class Mark:
    """One marked moment. `monotonic_ns` is known when it was the present one, of `boot_id`."""

    id: str
    kind: str
    subject: str
    text: str
    user: str
    wall_ns: int
    monotonic_ns: int | None = None
    boot_id: str | None = None
    details: JsonObject = field(default_factory=dict)  # further ones that its kind declares


def mark_event(mark: Mark, time_ns: int) -> Event:
    """Return a mark as the event it becomes, at its time on whichever clock is wanted."""
    declared = KINDS[mark.kind]
    known = {each.key for each in fields_of(declared)}
    given = {key: _short(value) for key, value in mark.details.items() if key in known}
    text = json.dumps({**given, "mark": mark.id, "user": mark.user})
    details = parse_details(declared, text)
    return Event(time_ns, mark.kind, mark.subject, mark.text, details=details)


def _short(value: Json) -> Json:
    return value[:MOST_CHARACTERS] if isinstance(value, str) else value


def write_mark(root: Path, mark: Mark) -> None:
    """Leave a mark for the recorder. Needs no recorder."""
    read_archive_info(root)
    make_directory(root / MARKS_DIRECTORY)
    content = asdict(mark)
    del content["id"]
    if not mark.details:
        del content["details"]
    replace_json(root / MARKS_DIRECTORY / f"{mark.id}.json", content)


def list_marks(root: Path) -> list[str]:
    """The ids of the marks that wait, in the order they were made."""
    try:
        names = os.listdir(root / MARKS_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):  # none yet, or a bundle
        return []
    except OSError as error:
        raise archive_error(root / MARKS_DIRECTORY, error) from error
    return sorted(
        name.removesuffix(".json")
        for name in names
        if name.endswith(".json") and not name.startswith(".")
    )


def read_mark(root: Path, mark_id: str) -> Mark | None:
    """A mark that waits; None if it was taken meanwhile."""
    path = root / MARKS_DIRECTORY / f"{mark_id}.json"
    try:
        content = read_json(path)
    except FileNotFoundError:
        return None
    texts = [content.get(name) for name in ("kind", "subject", "text", "user")]
    wall, monotonic, boot = (content.get(n) for n in ("wall_ns", "monotonic_ns", "boot_id"))
    if (
        not all(isinstance(text, str) for text in texts)
        or texts[0] not in KINDS
        or type(wall) is not int
        or not (monotonic is None or type(monotonic) is int)
        or not (boot is None or isinstance(boot, str))
    ):
        raise ArchiveError(path, "not a mark", hint="delete it: nobody can tell what it means")
    kind, subject, text, user = (str(each)[:MOST_CHARACTERS] for each in texts)
    given = content.get("details")
    details = given if isinstance(given, dict) else {}
    return Mark(mark_id, kind, subject, text, user, wall, monotonic, boot, details)


def remove_mark(root: Path, mark_id: str) -> None:
    """A mark is in the recording now."""
    path = root / MARKS_DIRECTORY / f"{mark_id}.json"
    with translated(path):
        path.unlink(missing_ok=True)
