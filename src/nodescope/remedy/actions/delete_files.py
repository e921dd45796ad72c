"""Delete files that lie in memory and pin zombies; they cannot come back.

Arguments: `files`, a JSON list of paths. Only regular files of tmpfs, ramfs and hugetlbfs are
deleted, never through a symbolic link, and only with the consent of whoever owns the folder.
A path may begin with /proc/PID/root, the root of a process in another mount namespace.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path

from nodescope.errors import RemedyError
from nodescope.remedy.actions.one_way import OneWay
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep

_IN_MEMORY = frozenset({0x01021994, 0x858458F6, 0x958458F6})  # tmpfs, ramfs, hugetlbfs
_OTHER_ROOT = re.compile(r"/proc/\d{1,9}/root(?=/)")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _DeleteFiles(OneWay):
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a list that is none, and files that are not what the plan says."""
        if not step.consent:
            return "the plan does not name whose files these are"
        try:
            for path in _paths(step):
                _delete(path, node, really=False)
        except RemedyError as error:
            return str(error)
        return None

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Delete each; one that is gone stays gone."""
        return {"deleted": sum(_delete(path, node, really=True) for path in _paths(step))}


def _paths(step: PlanStep) -> Sequence[str]:
    try:
        paths = json.loads(step.arguments.get("files", ""))
    except ValueError as error:
        raise RemedyError("the step's list of files is not JSON") from error
    if not isinstance(paths, list) or not paths or not all(isinstance(p, str) for p in paths):
        raise RemedyError("the step names no files")
    return paths


def _delete(path: str, node: NodeAccess, *, really: bool) -> bool:
    """Delete one file; return whether it was there."""
    other = _OTHER_ROOT.match(path)
    root = node.places.inside(other[0]) if other else node.places.root
    parts = (path[other.end() :] if other else path).split("/")[1:]
    if not path.startswith("/") or any(each in ("", ".", "..") or "\0" in each for each in parts):
        raise RemedyError(f"not the path of a file: {path!r}")
    with translated(path):
        try:
            descriptor = _open_folder(root, parts[:-1])
        except FileNotFoundError:
            return False
        try:
            return _delete_in(descriptor, parts[-1], path, really)
        finally:
            os.close(descriptor)


def _open_folder(root: Path, parts: Sequence[str]) -> int:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in parts:
        try:
            inner = os.open(part, _FOLDER, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _delete_in(folder: int, name: str, path: str, really: bool) -> bool:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):
        raise RemedyError(f"{path!r} is not a regular file")
    if _file_system(folder) not in _IN_MEMORY:
        raise RemedyError(f"{path!r} does not lie in memory: it pins no zombie for long")
    if really:
        os.unlink(name, dir_fd=folder)
    return True


def _file_system(descriptor: int) -> int:
    """Return the magic number of a descriptor's file system, as statfs(2) has it."""
    buffer = ctypes.create_string_buffer(256)
    library = ctypes.CDLL(None, use_errno=True)
    if library.fstatfs(descriptor, buffer):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    magic: int = ctypes.c_long.from_buffer(buffer).value
    return magic & 0xFFFFFFFF


OPERATION = _DeleteFiles()
