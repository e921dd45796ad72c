"""A set of paths that a step changes, with their states before and after.

It is captured before anything is changed and stored in the journal. Each path is then
changed by itself; what is neither as before nor as after was changed by somebody else and is
left alone. The times of folders come back as well, where nobody else put a name into them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from nodescope.errors import RemedyError
from nodescope.records.json import Json
from nodescope.remedy.actions.operation import Captured, Standing, UndoOutcome
from nodescope.remedy.files.file_state import FileState, parse_state
from nodescope.remedy.files.node_files import NodeFiles


@dataclass(frozen=True, slots=True)
class FileChange:
    """One path: what it was, and what the step makes of it."""

    path: str
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The paths of one step, and the folders whose names they change (outermost first)."""

    changes: tuple[FileChange, ...]
    folders: tuple[tuple[str, FileState], ...]

    def with_afters(self, now: FileChanges) -> FileChanges:
        """Return the same paths; whatever they are `now` is what the step made of them."""
        found = {each.path: each.before for each in now.changes}
        changes = tuple(replace(each, after=found[each.path]) for each in self.changes)
        return replace(self, changes=changes)

    def to_json(self) -> dict[str, Json]:
        """Return it for the journal."""
        return {
            "changes": [
                {"path": each.path, "before": each.before.to_json(), "after": each.after.to_json()}
                for each in self.changes
            ],
            "folders": [{"path": path, "state": state.to_json()} for path, state in self.folders],
        }


def parse_changes(captured: Captured) -> FileChanges:
    """Return the changes that `to_json` wrote."""
    changes = [
        FileChange(str(each["path"]), parse_state(each["before"]), parse_state(each["after"]))
        for each in _objects(captured.get("changes"))
    ]
    folders = [
        (str(each["path"]), parse_state(each["state"]))
        for each in _objects(captured.get("folders"))
    ]
    return FileChanges(tuple(changes), tuple(folders))


def _objects(value: Json) -> list[Mapping[str, Json]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [each for each in value if isinstance(each, Mapping)]
    raise RemedyError("the journal does not hold the files of this step")


# -- before ----------------------------------------------------------------------------


def capture_changes(files: NodeFiles, wanted: Mapping[str, FileState]) -> FileChanges:
    """Read everything that making `wanted` true will change."""
    changes = tuple(FileChange(path, files.read(path), after) for path, after in wanted.items())
    folders: dict[str, FileState] = {}
    for path in wanted:
        for folder in _changed_folders(files, path):
            folders[folder] = files.read(folder)
    return FileChanges(changes, tuple(sorted(folders.items())))


def _changed_folders(files: NodeFiles, path: str) -> list[str]:
    """Return the folder of a path, and those above it up to the first that exists."""
    found = []
    folder = path.rpartition("/")[0]
    while True:
        found.append(folder)
        if files.read(folder).kind != "absent":
            return found
        folder = folder.rpartition("/")[0]


# -- forward ---------------------------------------------------------------------------


def make_changes(files: NodeFiles, captured: FileChanges) -> None:
    """Make every path as it is to be; one that is so already stays."""
    for path, state in captured.folders:
        if state.kind == "absent" and _holds_something(captured, path):
            files.make_folder(path)
    for change in captured.changes:
        files.clean(change.path)
        now = files.read(change.path)
        if now.resembles(change.after):
            continue
        if not now.resembles(change.before):
            raise RemedyError(
                f"{change.path!r} was changed by somebody else meanwhile",
                hint="look at it; then make the plan again",
            )
        files.put(change.path, change.after)


def _holds_something(captured: FileChanges, folder: str) -> bool:
    return any(
        each.path.startswith(f"{folder}/") and each.after.kind != "absent"
        for each in captured.changes
    )


def where_stands(files: NodeFiles, captured: FileChanges) -> Standing:
    """Decide whether the paths are as before, as after, some of each, or otherwise."""
    seen: set[Standing] = set()
    for change in captured.changes:
        now = files.read(change.path)
        if now.resembles(change.after):
            seen.add("after")
        elif now.resembles(change.before):
            seen.add("before")
        else:
            return "other"
    if len(seen) == 2:
        return "between"
    return seen.pop() if seen else "after"


# -- back ------------------------------------------------------------------------------


def restore_changes(files: NodeFiles, captured: FileChanges) -> UndoOutcome:
    """Restore every path that is as the step left it, then the folders."""
    restored, left = [], []
    for change in reversed(captured.changes):
        files.clean(change.path)
        now = files.read(change.path)
        if now.resembles(change.after) and not now.resembles(change.before):
            files.put(change.path, change.before)
            restored.append(change.path)
        elif now == change.before or change.before.resembles(change.after):
            restored.append(change.path)
        else:
            left.append(f"{change.path}: somebody changed it since; it is left as it is")
    for path, state in reversed(captured.folders):
        _restore_folder(files, path, state, left)
    return UndoOutcome(tuple(reversed(restored)), tuple(left))


def _restore_folder(files: NodeFiles, path: str, before: FileState, left: list[str]) -> None:
    now = files.read(path)
    if before.kind == "absent":
        if now.kind == "folder" and not now.entries:
            files.remove_folder(path)
        elif now.kind != "absent":
            left.append(f"{path}: somebody put {', '.join(now.entries) or 'it'} there since")
    elif now.entries == before.entries:
        if before.mtime_ns is not None and now.mtime_ns != before.mtime_ns:
            files.set_time(path, before.mtime_ns)
    elif now.kind == "folder":
        left.append(f"{path}: others changed it since; its time is left as it is")
