"""A scenario's changes to the machine, written down beforehand so that they can be undone.

Every run has a ledger in `/run/nodescope-lab`: its owner, cgroups, mounts, frozen file
systems, settings, folders and processes. `undo` takes it down in the right order; `clean`
does the same for ledgers whose owner is gone, and for what bears our name without a
ledger. A process can be written down only when it is there: until then, and for what it
starts in its turn, the run's mark in its environment tells whose it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from nodescope.errors import SourceAbsent, UsageError
from nodescope.lab.cgroups import Controller, find_controller
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

LEDGERS = Path("/run/nodescope-lab")
_DISK = Path("/var/tmp")  # noqa: S108 names are our own, and made with mkdir
PREFIX = "nodescope-lab-"
MARK = "NODESCOPE_LAB_RUN"
_PATIENCE_S = 20.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(slots=True)
class GroundLedger:
    """The changes of one run."""

    owner: int
    owner_started: int
    cgroups: list[str] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    processes: list[tuple[int, int]] = field(default_factory=list)  # pid, start time
    restore: list[tuple[str, str]] = field(default_factory=list)  # file, what it said before
    frozen: list[str] = field(default_factory=list)  # file systems, by their mounts

    @property
    def mark(self) -> str:
        """Return the environment variable that only processes of this run have."""
        return f"{self.owner}.{self.owner_started}"


class Ground:
    """The place of one run; leaving it undoes everything."""

    def __init__(self) -> None:
        self.name = f"{PREFIX}{os.getpid()}"
        self._started: list[subprocess.Popen[bytes]] = []
        self._ledger = GroundLedger(os.getpid(), read_start_time(os.getpid()) or 0)
        LEDGERS.mkdir(mode=0o700, exist_ok=True)
        self._path = LEDGERS / f"{self.name}.json"
        self._save()

    def _save(self) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(self._ledger)))
        temporary.replace(self._path)

    @cached_property
    def memory(self) -> Controller:
        """Where memory cgroups are; scenarios that make none need it not."""
        return find_controller("memory")

    def __enter__(self) -> Ground:
        return self

    def __exit__(self, *_: object) -> None:
        # Who asks again to end gets it when all is down.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self.undo()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    # -- making ------------------------------------------------------------

    def folder(self, name: str, *, tmpfs: str | None = None, on_disk: bool = False) -> Path:
        """A folder of our own below /run (/var/tmp); on a tmpfs of that size if asked."""
        path = (_DISK if on_disk else LEDGERS) / f"{self.name}-{name}"
        self._ledger.folders.append(str(path))
        if tmpfs is not None:
            self._ledger.mounts.append(str(path))
        self._save()
        path.mkdir()
        if tmpfs is not None:
            options = f"size={tmpfs},nr_inodes=0,mode=700"
            command = ["mount", "-t", "tmpfs", "-o", options, "nodescope-lab", str(path)]
            subprocess.run(command, check=True)
        return path

    def image(self, name: str, size: str, *, on: Path, options: str = "") -> Path:
        """Mount a new ext4 file system that lies in a sparse file in the folder `on`."""
        file = on / f"{name}.img"
        path = self.folder(name)
        self._ledger.mounts.append(str(path))
        self._save()
        subprocess.run(["truncate", "--size", size, str(file)], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(file)], check=True, stdout=subprocess.DEVNULL)
        # A loop device that `mount` makes goes with the mount.
        choices = ",".join(filter(None, ("loop", options)))
        subprocess.run(["mount", "-o", choices, str(file), str(path)], check=True)
        return path

    def freeze(self, mount: Path) -> None:
        """Let nothing write to a file system until `thaw`, or the end."""
        self._ledger.frozen.append(str(mount))
        self._save()
        subprocess.run(["fsfreeze", "--freeze", str(mount)], check=True)

    def thaw(self, mount: Path) -> None:
        """Let everybody write to a file system again."""
        subprocess.run(["fsfreeze", "--unfreeze", str(mount)], check=True)
        self._ledger.frozen.remove(str(mount))
        self._save()

    def cgroup(self, name: str = "") -> Path:
        """A memory cgroup of our own; those below it are, too."""
        path = self.memory.mount / self.name
        if str(path) not in self._ledger.cgroups:
            self.make_cgroup(path)
            self.memory.hand_down(path)
        if name:
            self.make_cgroup(path / name)
        return path / name

    def make_cgroup(self, path: Path) -> None:
        """A cgroup in any place."""
        self._ledger.cgroups.append(str(path))
        self._save()
        path.mkdir()

    def start(self, command: Sequence[str], **more: object) -> subprocess.Popen[bytes]:
        """A process of ours, killed at the end with all it started."""
        process = subprocess.Popen(  # type: ignore[call-overload]
            command, start_new_session=True, env=os.environ | {MARK: self._ledger.mark}, **more
        )
        self.adopt(process.pid)
        self._started.append(process)
        return process  # type: ignore[no-any-return]

    def adopt(self, pid: int) -> None:
        """Write down a process; its whole session goes at the end."""
        self._ledger.processes.append((pid, read_start_time(pid) or 0))
        self._save()

    def write(self, path: Path, text: str) -> None:
        """Set a kernel setting until the end; refuse one that another run has set."""
        for other in LEDGERS.glob("*.json"):
            ledger = _read(other) if other != self._path else None
            if ledger and any(name == str(path) for name, _ in ledger.restore):
                # Whoever ends last would restore what the first has set.
                raise UsageError(
                    f"{path} is set by another run of the lab, of process {ledger.owner}",
                    hint="wait until it is over, or `nodescope lab clean` if it was killed",
                )
        self._ledger.restore.append((str(path), path.read_text().split("\n")[0]))
        self._save()
        path.write_text(text)

    def undo(self) -> None:
        """Take down everything; what resists is named."""
        left = take_down(self._ledger)
        for process in self._started:
            with process:  # waits for it, and closes its pipes
                pass
        if not left:
            self._path.unlink(missing_ok=True)
        else:
            raise UsageError(
                f"the lab could not take down {', '.join(left[:3])}",
                hint="`nodescope lab clean` tries again",
            )


def read_start_time(pid: int) -> int | None:
    """When a process started, in ticks since boot: tells it from a later one of its number."""
    try:
        return int(_read_stat(pid)[19])
    except OSError:
        return None


def _read_stat(pid: int) -> list[bytes]:
    """Read the fields of /proc/PID/stat after the name, the state first."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def take_down(ledger: GroundLedger) -> list[str]:
    """Undo a ledger, last made first; returns what could not be."""
    deadline = time.monotonic() + _PATIENCE_S
    for path, text in reversed(ledger.restore):
        with contextlib.suppress(OSError):
            Path(path).write_text(text)
    for name in reversed(ledger.frozen):  # before processes: who waits for it cannot be killed
        unfreeze = ["fsfreeze", "--unfreeze", name]
        subprocess.run(unfreeze, check=False, stderr=subprocess.DEVNULL)
    left = _end_processes(ledger, deadline)
    for name in reversed(ledger.mounts):
        if os.path.ismount(name):
            subprocess.run(["umount", "-l", name], check=False, stderr=subprocess.DEVNULL)
    for name in reversed(ledger.folders):
        shutil.rmtree(name, ignore_errors=True)
    for name in sorted(ledger.cgroups, key=lambda each: -each.count("/")):
        while not remove_cgroup(Path(name)):
            if time.monotonic() > deadline:
                left.append(name)
                break
            time.sleep(0.05)
    return left


def _end_processes(ledger: GroundLedger, deadline: float) -> list[str]:
    """Kill until none is left: who is killed in the kernel ends when it comes out of it."""
    # Once: a session outlives its first process.
    sessions = {pid for pid, started in ledger.processes if read_start_time(pid) == started}
    while alive := _find_processes(sessions, ledger.mark):
        if time.monotonic() > deadline:
            return [f"process {pid}" for pid in alive]
        for pid in alive:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return []


def _find_processes(sessions: Collection[int], mark: str) -> list[int]:
    """Processes of some sessions, or with a run's mark; the dead that nobody asked for are none."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it is gone
            state, _, _, session = _read_stat(int(name))[:4]
            if state in (b"Z", b"X"):
                continue
            environment = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            if int(session) in sessions or wanted in environment:
                found.append(int(name))
    return found


def remove_cgroup(path: Path) -> bool:
    """Remove a cgroup with all below it; whether it is gone."""
    for folder, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            for pid in Path(folder, "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.rmdir(folder)
    return not path.exists()


def clean() -> list[str]:
    """Undo what runs that are gone have left; says what was found."""
    if os.geteuid() != 0 and not _sees_nothing():
        raise UsageError(
            f"what runs of the lab have left ({LEDGERS}) only root may see and take down",
            hint="`sudo nodescope lab clean`",
        )
    found: list[str] = []
    for path in sorted(LEDGERS.glob("*.json")):
        ledger = _read(path)
        if ledger is None:
            path.unlink(missing_ok=True)
            continue
        if read_start_time(ledger.owner) == ledger.owner_started:
            continue  # it still runs
        left = take_down(ledger)
        found.append(
            f"a run of process {ledger.owner}" + (f", but {left[0]} stays" if left else "")
        )
        if not left:
            path.unlink(missing_ok=True)
    for cgroup in _strays():
        found.append(f"cgroup {cgroup}")
        remove_cgroup(cgroup)
    return found


def _sees_nothing() -> bool:
    """Return whether nothing can have been left: no run has been, and no cgroup is ours."""
    return not LEDGERS.exists() and not any(_strays())


def _read(path: Path) -> GroundLedger | None:
    try:
        content = json.loads(path.read_text())
        content["processes"] = [tuple(each) for each in content["processes"]]
        content["restore"] = [tuple(each) for each in content["restore"]]
        return GroundLedger(**content)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _strays() -> Iterator[Path]:
    """Cgroups that bear our name, of owners that are gone."""
    try:
        hierarchies = read_hierarchies(Places())
    except SourceAbsent:
        return
    for each in hierarchies:
        for path in each.mount.glob(f"{PREFIX}*"):
            number = path.name.removeprefix(PREFIX).split("-")[0]
            if path.is_dir() and number.isdecimal() and read_start_time(int(number)) is None:
                yield path
