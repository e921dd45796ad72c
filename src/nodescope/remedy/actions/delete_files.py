"""Delete files that lie in memory and pin zombies; they cannot come back.

Arguments: `files`, a JSON object with `DEVICE:INODE` by path. Only regular files of tmpfs, ramfs
and hugetlbfs below the target's folder are deleted, never through a symbolic link, and only with
the consent of whoever owns the folder. A file that was replaced since the plan, or that a process
has open or mapped, is left alone: it is in use, and its memory would not be freed.
A path may begin with /proc/PID/root, the root of a process in another mount namespace.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from nodescope.errors import RemedyError
from nodescope.remedy.actions.one_way import OneWay
from nodescope.remedy.actions.operation import Captured
from nodescope.remedy.files.files_in_use import Identity, find_used
from nodescope.remedy.files.system_errors import translated
from nodescope.remedy.guard.unit_surroundings import find_proc
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep

_IN_MEMORY = frozenset({0x01021994, 0x858458F6, 0x958458F6})  # tmpfs, ramfs, hugetlbfs
Found = Literal["same", "replaced", "gone"]
_OTHER_ROOT = re.compile(r"/proc/\d{1,9}/root(?=/)")
# State of the system in /run: nobody has it open, and it is needed all the same.
_SYSTEM_STATE = tuple(
    f"/run/{name}"
    for name in (
        "systemd", "udev", "dbus", "credentials", "log", "lvm", "mdadm", "netns", "NetworkManager",
        "containerd", "docker", "runc", "crun", "podman", "libpod", "containers", "crio", "lock",
    )
)  # fmt: skip
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _DeleteFiles(OneWay):
    """The operation."""

    def check(self, step: PlanStep, node: NodeAccess) -> str | None:
        """Refuse a list that is none, and files that are not what the plan says."""
        if not step.consent:
            return "the plan does not name whose files these are"
        try:
            files = _files(step)
            used = find_used(find_proc(node), set(files.values())).used
            now = [
                "used" if identity in used else _delete(path, node, identity, really=False)
                for path, identity in files.items()
            ]
        except RemedyError as error:
            return str(error)
        if not {"same", "gone"} & set(now):  # gone: an earlier run may have been cut short
            return "each of its files was replaced since, or is used by a process"
        return None

    def apply(self, step: PlanStep, node: NodeAccess, before: Captured) -> Captured:
        """Delete each that is still the planned one and that no process uses."""
        files = _files(step)
        found = find_used(find_proc(node), set(files.values()))
        deleted = sum(
            _delete(path, node, identity, really=True) == "same"
            for path, identity in files.items()
            if identity not in found.used
        )
        left, used = len(files) - deleted, len(found.used)
        return {"deleted": deleted, "left": left, "used": used, "unseen": found.unseen}


def is_system_state(path: str) -> bool:
    """Decide whether a file is state of systemd, udev or a container runtime."""
    inner = _OTHER_ROOT.sub("", path, count=1)
    return any(inner.startswith(f"{each}/") for each in _SYSTEM_STATE)


def _files(step: PlanStep) -> Mapping[str, Identity]:
    """Return the identity of each file by its path."""
    try:
        listed = json.loads(step.arguments.get("files", ""))
    except ValueError as error:
        raise RemedyError("the step's list of files is not JSON") from error
    if not isinstance(listed, dict) or not listed:
        raise RemedyError("the step names no files")
    folder = (step.target.name or "").rstrip("/")
    found = {}
    for path, identity in listed.items():
        device, _, inode = str(identity).partition(":")
        if not device.isdecimal() or not inode.isdecimal():
            raise RemedyError(f"the plan does not tell which file {path!r} was")
        if not folder or not path.startswith(f"{folder}/"):
            raise RemedyError(f"{path!r} does not lie in {folder or 'a folder'}")
        if is_system_state(path):
            raise RemedyError(f"{path!r} is state of systemd, udev or a runtime")
        found[path] = int(device), int(inode)
    return found


def _delete(path: str, node: NodeAccess, identity: Identity, *, really: bool) -> Found:
    """Delete one file if it is still the same; return what was there."""
    other = _OTHER_ROOT.match(path)
    root = node.places.inside(other[0]) if other else node.places.root
    parts = (path[other.end() :] if other else path).split("/")[1:]
    if not path.startswith("/") or any(each in ("", ".", "..") or "\0" in each for each in parts):
        raise RemedyError(f"not the path of a file: {path!r}")
    with translated(path):
        try:
            descriptor = _open_folder(root, parts[:-1])
        except FileNotFoundError:
            return "gone"
        try:
            return _delete_in(descriptor, parts[-1], path, identity, really)
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


def _delete_in(folder: int, name: str, path: str, identity: Identity, really: bool) -> Found:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return "gone"
    if not stat.S_ISREG(found.st_mode):
        raise RemedyError(f"{path!r} is not a regular file")
    if _file_system(folder) not in _IN_MEMORY:
        raise RemedyError(f"{path!r} does not lie in memory: it pins no zombie for long")
    if (found.st_dev, found.st_ino) != identity:
        return "replaced"  # it is not what the plan was made for
    if really:
        os.unlink(name, dir_fd=folder)
    return "same"


def _file_system(descriptor: int) -> int:
    """Return the magic number of a descriptor's file system, as statfs(2) has it."""
    buffer = ctypes.create_string_buffer(256)
    library = ctypes.CDLL(None, use_errno=True)
    if library.fstatfs(descriptor, buffer):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    magic: int = ctypes.c_long.from_buffer(buffer).value
    return magic & 0xFFFFFFFF


OPERATION = _DeleteFiles()
