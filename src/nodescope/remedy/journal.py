"""The journal of one plan: what was about to be done, and what was done, kept on disk.

One file per plan, JSON lines, only ever appended to. Each line is on disk (fsync of the file,
and of the folder when the file is new) before the next thing happens: an `intent` with
everything that is needed to go back stands there before a step changes the node. Each line
has a checksum over itself and the line before it. A last line that is torn was never
finished and is ignored; damage anywhere else is an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from nodescope.errors import RemedyError
from nodescope.records.json import Json, JsonObject
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.plan_documents import parse_step, step_document
from nodescope.sources.places import Places
from nodescope.sources.systemd.locations import unit_root

FIXES_FOLDER = "var/lib/nodescope/fixes"
SUFFIX = ".journal"
_FIRST = "0" * 16
_MOST_BYTES = 256 << 20

RecordName = Literal["intent", "done", "failed", "undoing", "undone", "kept"]
Moment = Literal["before", "after"]
# Called before and after each line is written; tests end the process there.
AroundWrite = Callable[[Moment, RecordName], None]


@dataclass(frozen=True, slots=True)
class JournalRecord:
    """One line of a journal."""

    kind: RecordName
    number: int  # of the step, from 1
    attempt: int  # of this step, from 1
    wall_ns: int
    content: JsonObject


@dataclass(slots=True)
class StepAttempt:
    """One attempt at one step, as the journal tells it."""

    number: int
    attempt: int
    step: PlanStep
    before: JsonObject
    begun_ns: int
    after: JsonObject | None = None  # None: not known to be complete
    ended_ns: int | None = None
    error: str | None = None
    undo_begun: bool = False
    undone_ns: int | None = None
    kept: bool = False  # it cannot be taken back, and undo went past it
    left_alone: tuple[str, ...] = ()

    @property
    def stands(self) -> bool:
        """Return whether it may have left something on the node that undo has not handled."""
        return self.undone_ns is None and not self.kept


@dataclass(slots=True)
class PlanJournal:
    """The journal of one plan, open for appending."""

    path: Path
    around: AroundWrite = lambda _moment, _kind: None
    attempts: list[StepAttempt] = field(default_factory=list, init=False)
    _descriptor: int = field(default=-1, init=False)
    _last: str = field(default=_FIRST, init=False)

    @classmethod
    def open(
        cls, folder: Path, plan: str, around: AroundWrite = lambda _moment, _kind: None
    ) -> PlanJournal:
        """Open the journal of a plan and drop a torn last line; the caller has the node's lock."""
        journal = cls(folder / f"{checked_id(plan)}{SUFFIX}", around)
        with translated(str(journal.path)):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            journal._descriptor = os.open(journal.path, flags, 0o600)
            try:
                data = _read_all(journal._descriptor)
                records, whole, journal._last = parse_journal(data, str(journal.path))
                if whole < len(data):
                    os.ftruncate(journal._descriptor, whole)
                _sync(journal._descriptor, folder)
                journal.attempts = fold_records(records)
            except BaseException:
                journal.close()
                raise
        return journal

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def latest(self, number: int) -> StepAttempt | None:
        """Return the last attempt at a step that still stands."""
        found = [each for each in self.attempts if each.number == number and each.stands]
        return found[-1] if found else None

    def completed(self, number: int) -> int:
        """Return how often a step was completed and not taken back."""
        return sum(e.number == number and e.stands and e.after is not None for e in self.attempts)

    # -- writing ---------------------------------------------------------------------

    def begin(self, number: int, step: PlanStep, before: JsonObject) -> StepAttempt:
        """Store that a step is about to be taken, with the state to go back to."""
        count = sum(each.number == number for each in self.attempts) + 1
        content = {"step": step_document(step), "before": before}
        return self._add(JournalRecord("intent", number, count, time.time_ns(), content))

    def note(self, kind: RecordName, attempt: StepAttempt, content: JsonObject) -> None:
        """Store what became of an attempt."""
        self._add(JournalRecord(kind, attempt.number, attempt.attempt, time.time_ns(), content))

    def _add(self, record: JournalRecord) -> StepAttempt:
        line, checksum = format_record(record, self._last)
        self.around("before", record.kind)
        with translated(str(self.path)):
            size = os.fstat(self._descriptor).st_size
            try:
                _write_all(self._descriptor, line)
                os.fsync(self._descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._descriptor, size)  # half a line helps nobody
                raise
        self._last = checksum
        self.around("after", record.kind)
        _fold(self.attempts, record)
        return next(
            each
            for each in reversed(self.attempts)
            if (each.number, each.attempt) == (record.number, record.attempt)
        )


def read_journal(path: Path) -> list[StepAttempt]:
    """Read a journal without changing it; a line that is being written is left out."""
    with translated(str(path)):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            data = _read_all(descriptor)
        finally:
            os.close(descriptor)
    return fold_records(parse_journal(data, str(path))[0])


def list_journals(folder: Path) -> list[Path]:
    """Return the journals of a node, the oldest first; none where nothing was ever applied."""
    try:
        with translated(str(folder)):
            found = [each for each in folder.iterdir() if each.name.endswith(SUFFIX)]
            return sorted(found, key=lambda each: (each.lstat().st_mtime_ns, each.name))
    except RemedyError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return []
        raise


def fixes_folder(places: Places) -> Path:
    """Return the folder of a node's journals, which may not exist yet."""
    return (unit_root(places) or places.root) / FIXES_FOLDER


def make_fixes_folder(root: Path) -> Path:
    """Make the folder of journals below a node's root, for its owner alone."""
    folder = root / FIXES_FOLDER
    with translated(str(folder)):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode):
            raise RemedyError(f"{folder} is not a folder", hint="Nodescope follows no link there")
        if found.st_mode & 0o077:
            folder.chmod(0o700)
    return folder


def checked_id(plan: str) -> str:
    """Return the id of a plan; refuse what cannot be one."""
    if not plan or len(plan) > 64 or not all(each in "0123456789abcdef" for each in plan):
        raise RemedyError(f"not the id of a plan: {plan!r}")
    return plan


# -- the format ------------------------------------------------------------------------


def format_record(record: JournalRecord, last: str) -> tuple[bytes, str]:
    """Return a record as a line, and its checksum, which goes into the next one."""
    body = {
        "kind": record.kind,
        "number": record.number,
        "attempt": record.attempt,
        "wall_ns": record.wall_ns,
        "content": record.content,
    }
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=True)
    checksum = _checksum(last, text)
    return f'{{"sum":"{checksum}","record":{text}}}\n'.encode(), checksum


def parse_journal(data: bytes, path: str) -> tuple[list[JournalRecord], int, str]:
    """Return the records, how many bytes of the file they are, and the last checksum."""
    records: list[JournalRecord] = []
    at, last = 0, _FIRST
    while at < len(data):
        end = data.find(b"\n", at) + 1
        parsed = _parse_line(data[at:end], last) if end else None
        if parsed is None:
            if end and end < len(data):
                raise RemedyError(
                    f"{path}: line {len(records) + 1} is damaged",
                    hint="its steps cannot be taken back by it; the lines before it are JSON "
                    "and name every file with its content",
                )
            break  # torn: its writer did not live to act on it
        record, last = parsed
        records.append(record)
        at = end
    return records, at, last


def _parse_line(line: bytes, last: str) -> tuple[JournalRecord, str] | None:
    head, separator, rest = line.partition(b',"record":')
    if not separator or not head.startswith(b'{"sum":"') or not rest.endswith(b"}\n"):
        return None
    checksum, text = head[8:-1].decode("ascii", "replace"), rest[:-2]
    if checksum != _checksum(last, text.decode("ascii", "replace")):
        return None
    body = json.loads(text)
    for kind in get_args(RecordName):
        if body["kind"] == kind:
            return JournalRecord(
                kind, body["number"], body["attempt"], body["wall_ns"], body["content"]
            ), checksum
    raise RemedyError(
        f"a journal with {body['kind']!r}", hint="it is of a later Nodescope: use that one"
    )


def _checksum(last: str, text: str) -> str:
    return hashlib.sha256(f"{last}{text}".encode()).hexdigest()[:16]


def fold_records(records: list[JournalRecord]) -> list[StepAttempt]:
    """Return the attempts that records tell of, in the order they were begun."""
    attempts: list[StepAttempt] = []
    for record in records:
        _fold(attempts, record)
    return attempts


def _fold(attempts: list[StepAttempt], record: JournalRecord) -> None:
    content = record.content
    if record.kind == "intent":
        step = parse_step(_object(content.get("step")))
        before = _object(content.get("before"))
        attempts.append(StepAttempt(record.number, record.attempt, step, before, record.wall_ns))
        return
    for attempt in reversed(attempts):
        if (attempt.number, attempt.attempt) == (record.number, record.attempt):
            break
    else:
        raise RemedyError(f"a journal in which step {record.number} ends before it begins")
    if record.kind == "done":
        attempt.after, attempt.error = _object(content.get("after")), None
        attempt.ended_ns = record.wall_ns
    elif record.kind == "failed":
        attempt.error, attempt.ended_ns = str(content.get("error")), record.wall_ns
    elif record.kind == "undoing":
        attempt.undo_begun = True
    elif record.kind == "undone":
        attempt.undone_ns = record.wall_ns
        left = content.get("left_alone")
        attempt.left_alone = tuple(map(str, left)) if isinstance(left, list) else ()
    else:
        attempt.kept = True


def _object(value: Json) -> JsonObject:
    if isinstance(value, Mapping):
        return value
    raise RemedyError("a journal whose lines lack what they must have")


# -- the file --------------------------------------------------------------------------


def _read_all(descriptor: int) -> bytes:
    return b"".join(_chunks(descriptor))


def _chunks(descriptor: int) -> Iterator[bytes]:
    at = 0
    while at < _MOST_BYTES and (chunk := os.pread(descriptor, 1 << 20, at)):
        at += len(chunk)
        yield chunk


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync(descriptor: int, folder: Path) -> None:
    os.fsync(descriptor)
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
