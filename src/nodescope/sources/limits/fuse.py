"""Requests that wait for file systems in user space, and the tasks that wait with them.

`fusectl` shows for each connection how many requests wait (Documentation/filesystems/fuse.rst);
its folders bear the minor number of the file system. It is mounted at
`/sys/fs/fuse/connections`, or else for this process alone. A busy daemon always has a request
waiting. That one request waits is shown by a task that sleeps for its answer and was
not woken in between; such a task is in state S, and no list of blocked tasks has it.
"""

from __future__ import annotations

import os
from pathlib import Path

from nodescope.errors import source_error
from nodescope.sources.node.detached_mount import mount_detached

_MOST_TASKS = 5000
# Tasks that wait for a lock or for readiness wait for another program, not for the daemon.
_WAITS_FOR_OTHERS = (b"fuse_setlk", b"fuse_file_poll", b"fuse_dev_")
_SLEEPS_IN = (b"request_wait_answer", b"fuse_get_req", b"fuse_simple_request", b"__fuse_")


class FuseControl:
    """An open fusectl."""

    def __init__(self, sys: Path) -> None:
        folder = sys / "fs/fuse/connections"
        try:
            if any(folder.iterdir()):
                self._descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            else:
                self._descriptor = mount_detached("fusectl")
        except OSError as error:
            raise source_error(folder, error) from error

    def read_waiting(self, minor: str) -> int | None:
        """Return the requests that wait for a connection; None if it is gone."""
        try:
            file = os.open(f"{minor}/waiting", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            content = os.read(file, 32).strip()
        except OSError:
            return None
        finally:
            os.close(file)
        return int(content) if content.isdigit() else None

    def close(self) -> None:
        """Give it back."""
        os.close(self._descriptor)


def find_waiting_tasks(proc: Path) -> dict[tuple[int, int], str]:
    """Return the tasks that sleep for an answer: their id and switches so far → their name."""
    found = {}
    left = _MOST_TASKS
    for process in os.listdir(proc):
        if not process.isdigit():
            continue
        try:
            tasks = os.listdir(proc / process / "task")
        except OSError:
            continue  # ended meanwhile
        for task in tasks[:left]:
            waiting = _read_waiting_task(f"{proc}/{process}/task/{task}")
            if waiting is not None:
                found[int(task), waiting[0]] = waiting[1]
        left -= len(tasks)
        if left <= 0:
            break
    return found


def _read_waiting_task(folder: str) -> tuple[int, str] | None:
    """Return switches and name of a task that waits for a daemon; None if it does not."""
    if not _read(f"{folder}/wchan").startswith(_SLEEPS_IN):
        return None
    stack = _read(f"{folder}/stack")
    if any(name in stack for name in _WAITS_FOR_OTHERS):
        return None
    name, switches = "", None
    for line in _read(f"{folder}/status").split(b"\n"):
        key, _, value = line.partition(b":")
        if key == b"Name":
            name = value.strip().decode("utf-8", "replace")
        elif key == b"voluntary_ctxt_switches" and value.strip().isdigit():
            switches = int(value)
    return None if switches is None else (switches, name)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read(4096) or b""
    except OSError:
        return b""  # ended meanwhile, or not for us
