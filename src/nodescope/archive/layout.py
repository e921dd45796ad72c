"""An archive on disk: what lies where, and what may be relied upon.

::

    ARCHIVE/
      archive.json        format version, when it was created, which node it is of, its size limit
      lock                held by the recorder that writes here; names its pid and host
      open/NAME/          the segment being written: TABLE.arrows, and segment.json
      segments/NAME/      a sealed segment: TABLE.parquet, and segment.json
      hours/NAME/         roll-ups of an hour of segments, added up: TABLE.parquet, and hour.json
      frozen/ID.json      a wall-clock range that retention must spare
      marks/ID.json       a marked moment that the recorder has not yet put on disk

A segment's NAME is its sequence number and the wall time it started at, as in
`00000017-20240229T235959Z`. Segments are ordered by sequence number, because
wall clocks step.

The contract:

1. *Sealed means for ever.* A directory appears in `segments/` by one rename,
   complete and synced. Afterwards nothing writes into it; it can only vanish
   as a whole, by a rename to a name that starts with a dot.
2. *A flush is what a crash may cost.* The open segment grows by whole Arrow
   messages, tables that are referred to before those that refer to them, and
   every flush ends with a sync. A reader takes each stream up to its last
   whole batch and drops rows that refer to rows which did not make it. A torn
   tail is the normal end of a killed recorder, never an error.
3. *One way in.* Sealing reads the open segment back from disk, so that what a
   recorder seals and what a later one recovers is the same function of the
   same bytes.
4. *One writer, any number of readers.* The writer holds `lock`. Readers take
   no lock, see sealed segments whole, and the open one up to some flush.
5. *Names that start with a dot are nobody's.* They are half-built or
   half-removed; readers skip them and the next writer deletes them.
6. *Only ours, only here.* Directories are 0700 and files 0600: a recording
   tells what ran on the machine. Symbolic links inside an archive are not
   followed.

A slice of an archive in one file is a bundle: see `nodescope.archive.bundle`.

The format is one number, in `archive.json` and in each `segment.json`. A
reader refuses a newer one by name and reads every older one. A new table needs a
new number; a new column that may be null does not, as older readers pass over it.
"""

from __future__ import annotations

import os
import re
import time
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nodescope.archive.files import archive_error, make_directory, read_json, replace_json
from nodescope.errors import ArchiveError, NewerFormat
from nodescope.quantities import SECOND_NS

# 2: events carry a core and details; what the node knows about itself.
# 3: an open segment appends stacks whole; more roll-ups of a segment with many samples.
# 4: samples of a small segment by thread.
# 5: these in the order of time, and ranks by comm.
FORMAT = 5

ARCHIVE_FILE = "archive.json"
LOCK_FILE = "lock"
OPEN_DIRECTORY = "open"
SEALED_DIRECTORY = "segments"
HOURS_DIRECTORY = "hours"
FROZEN_DIRECTORY = "frozen"
MARKS_DIRECTORY = "marks"
ROOM_BYTES = 512 << 10  # that a device must have free: a few flushes, and sealing what is open
MAX_TIME_NS = (1 << 62) - 1  # in the year 2116: sums of two still fit into 64 bits

_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"(\d{8,12})-\d{8}T\d{6}Z")
_FOLDER_HINT = "give the folder that a recorder writes to with --archive"
READING_HINT = "give the folder that a recorder writes to, or a bundle, with --archive"


@dataclass(frozen=True, slots=True)
class ArchiveInfo:
    """The content of `archive.json`."""

    format: int
    created_ns: int
    node: dict[str, object]
    retention_bytes: int | None = None  # to which size its last writer keeps it


def name_segment(sequence: int, wall_ns: int) -> str:
    """The directory name of a segment; a clock before 1970 reads as 1970."""
    started = time.gmtime(min(max(wall_ns, 0) // SECOND_NS, 253_402_300_799))
    return f"{sequence:08d}-{time.strftime(_STAMP, started)}"


def parse_opened_ns(name: str) -> int:
    """Return when a segment was opened, by its name: known without reading it."""
    stamp = name.partition("-")[2]
    return timegm(time.strptime(stamp, _STAMP)) * SECOND_NS


def parse_sequence(name: str) -> int | None:
    """The sequence number in a segment's name; None if it is not such a name."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def list_segment_names(directory: Path) -> list[str]:
    """Segments in `directory` by sequence; what is not named like one is not ours."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if not entry.is_symlink()]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise archive_error(directory, error) from error
    known = [(sequence, name) for name in names if (sequence := parse_sequence(name)) is not None]
    return [name for _, name in sorted(known)]


def check_format(path: str | Path, number: object) -> int:
    """Refuse a format that is newer than ours, or none at all."""
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise ArchiveError(path, f"its format is {number!r}, not a version number")
    if number > FORMAT:
        raise NewerFormat(
            path,
            f"written in format {number}; this Nodescope reads formats up to {FORMAT}",
            hint="read it with the Nodescope that recorded it, or a later one",
        )
    return number


def read_archive_info(root: Path, hint: str = _FOLDER_HINT) -> ArchiveInfo:
    """Read and check `archive.json` of a folder; a bundle is refused."""
    path = root / ARCHIVE_FILE
    _check_folder(root)
    if not root.is_dir():
        raise ArchiveError(root, "no such archive", hint=hint)
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise ArchiveError(root, f"not an archive: it has no {ARCHIVE_FILE}", hint=hint) from None
    return parse_archive_info(path, content)


def _check_folder(root: Path) -> None:
    """Refuse what is there and no folder, as a bundle is: only folders are written to."""
    if root.is_file():
        raise ArchiveError(root, "a file, and a bundle can only be read", hint=_FOLDER_HINT)
    if root.exists() and not root.is_dir():
        raise ArchiveError(root, "not a folder", hint=_FOLDER_HINT)


def parse_archive_info(path: str | Path, content: Mapping[str, object]) -> ArchiveInfo:
    """Check what `archive.json` says."""
    number = check_format(path, content.get("format"))
    created, node = content.get("created"), content.get("node")
    if not isinstance(created, int) or not isinstance(node, dict):
        raise ArchiveError(path, "does not say when it was created, or of which node it is")
    size = content.get("retention_bytes")
    return ArchiveInfo(number, created, node, size if type(size) is int else None)


def create_archive(
    root: Path, created_ns: int, node: dict[str, object], retention_bytes: int | None = None
) -> ArchiveInfo:
    """Make the folder an archive, or bring an existing one's facts up to date.

    A folder with other things in it is left alone: `--archive /` is a typing
    mistake, not a wish.
    """
    make_directory(root, parents=True)
    if not (root / ARCHIVE_FILE).exists():
        foreign = sorted(entry.name for entry in root.iterdir() if not _is_ours(entry.name))
        if foreign:
            raise ArchiveError(
                root,
                f"not an archive, and not empty: it holds {foreign[0]!r}",
                hint="give an empty folder, or one that does not exist yet",
            )
        info = ArchiveInfo(FORMAT, created_ns, node, retention_bytes)
    else:
        old = read_archive_info(root)
        kept = old.retention_bytes if retention_bytes is None else retention_bytes
        info = ArchiveInfo(FORMAT, old.created_ns, node, kept)
        if info == old:
            return info
    content: dict[str, object] = {"format": info.format, "created": info.created_ns}
    content["node"] = info.node
    if info.retention_bytes is not None:
        content["retention_bytes"] = info.retention_bytes
    replace_json(root / ARCHIVE_FILE, content)
    return info


def _is_ours(name: str) -> bool:
    # lost+found: an archive may be a file system of its own.
    directories = (
        OPEN_DIRECTORY,
        SEALED_DIRECTORY,
        HOURS_DIRECTORY,
        FROZEN_DIRECTORY,
        MARKS_DIRECTORY,
    )
    return name.startswith(".") or name in (LOCK_FILE, *directories, "lost+found")
