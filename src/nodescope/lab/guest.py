"""A real systemd as the first process of its own namespaces, over a throw-away root.

For machines whose own first process is not systemd, and for scenarios that must not
touch the one that is. `python -m nodescope.lab.guest ROOT_FOLDER UNITS_FOLDER NAME
[FOLDER…]` is what runs inside the new namespaces; `Guest` starts it from outside. The
further folders are those of this machine that the guest must see, wherever they lie.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from nodescope.errors import UsageError
from nodescope.lab import cgroups
from nodescope.lab.ground import Ground
from nodescope.lab.processes import wait_until_ready
from nodescope.lab.unit_programs import SOURCE
from nodescope.sources.cgroups.hierarchies import read_hierarchies
from nodescope.sources.places import Places

SYSTEMD = Path("/lib/systemd/systemd")
_PRIORITY = {"cpu.shares": "102400", "cpu.weight": "10000"}
_CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "devices", "freezer", "blkio", "pids")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "kmsg")
_MASKED = (
    "systemd-udevd", "systemd-udev-trigger", "systemd-resolved", "systemd-networkd",
    "systemd-timesyncd", "systemd-logind", "networking", "getty@tty1", "console-getty",
)  # fmt: skip


def require() -> None:
    """Refuse where the machine lacks what a guest needs."""
    cgroups.require("memory")
    if not SYSTEMD.exists():
        raise UsageError("systemd is not installed", hint="Debian: `apt install systemd dbus`")
    for program in ("unshare", "mount", "pivot_root", "dbus-daemon", "nsenter"):
        if shutil.which(program) is None:
            raise UsageError(
                f"{program} is not installed", hint="Debian: `apt install util-linux mount dbus`"
            )


class Guest:
    """A systemd that runs our units."""

    def __init__(
        self, ground: Ground, units: Mapping[str, str], shared: Iterable[Path] = ()
    ) -> None:
        require()
        self._name = f"{ground.name}-systemd"
        folder = ground.folder("systemd")
        (folder / "units").mkdir()
        for name, text in units.items():
            (folder / "units" / name).write_text(text)
        (folder / "root").mkdir()
        self._cgroups = []
        for each in read_hierarchies(Places()):
            ground.make_cgroup(each.mount / self._name)
            _put_first(each.mount / self._name)
            # Under v1 a new cgroup of this controller has no cores: nothing can run in it.
            if each.version == 2 or "cpuset" not in each.controllers:
                self._cgroups.append(each.mount / self._name)
        command = [
            "unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--net", "--cgroup",
            sys.executable, "-m", "nodescope.lab.guest", str(folder / "root"),
            str(folder / "units"), self._name, *map(str, (*_own_folders(), *shared)),
        ]  # fmt: skip
        log = folder / "log"
        with log.open("wb") as said:
            self.process = ground.start(
                command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, preexec_fn=self._enter
            )
        self.pid = wait_until_ready(self.process, "the lab's systemd", self._find_booted, log=log)
        ground.adopt(self.pid)

    def _enter(self) -> None:
        for path in self._cgroups:
            (path / "cgroup.procs").write_text("0")

    def _find_booted(self) -> int | None:
        """Return the pid of its PID 1 once that is systemd and its bus listens."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            pid = int(children.read_text().split()[0])
            booted = Path(f"/proc/{pid}/comm").read_text().strip() == "systemd"
            return pid if booted and self._socket(pid).exists() else None
        except (OSError, IndexError):
            return None  # not yet

    def _socket(self, pid: int) -> Path:
        return Path(f"/proc/{pid}/root/run/dbus/system_bus_socket")

    @property
    def bus(self) -> str:
        """The D-Bus address to give to a recorder."""
        return f"unix:path={self._socket(self.pid)}"

    @property
    def journal(self) -> Path:
        """Where its journal lies."""
        return Path(f"/proc/{self.pid}/root/run/log/journal")

    @property
    def name(self) -> str:
        """The name of its cgroup in every hierarchy."""
        return self._name

    def enter(self, *command: str, text: str = "") -> None:
        """Run a command of this machine in the guest's network, with a text as its input."""
        inside = ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]
        subprocess.run(inside, input=text.encode(), check=True)

    def start(self, unit: str) -> None:
        """Have its systemd start a unit, and do not wait for it."""
        inside = ["nsenter", "--target", str(self.pid), "--all", "--wd=/"]
        subprocess.run([*inside, "systemctl", "start", "--no-block", unit], check=True)

    @property
    def slice(self) -> str:
        """The path of its services' parent in the memory hierarchy."""
        return f"/{self._name}/system.slice"


def _put_first(cgroup: Path) -> None:
    """Let a cgroup have its cores before others: a fault must come about on a busy machine."""
    for name, most in _PRIORITY.items():
        if (cgroup / name).exists():
            (cgroup / name).write_text(most)


def _own_folders() -> list[Path]:
    """Return what our own programs need: this package and its Python, outer folders first."""
    return sorted({SOURCE, Path(sys.base_prefix).resolve()})


# -- inside --------------------------------------------------------------------


def _mount(*arguments: str | Path, check: bool = True) -> bool:
    done = subprocess.run(["mount", *map(str, arguments)], check=check, capture_output=not check)
    return done.returncode == 0


def _boot(root: Path, units: Path, name: str, folders: list[Path]) -> None:
    """Build the root and become systemd."""
    _mount("--make-rprivate", "/")
    work = root
    _mount("-t", "tmpfs", "-o", "size=1g", "work", work)
    for each in ("up", "wk", "root"):
        (work / each).mkdir()
    layers = f"lowerdir=/,upperdir={work}/up,workdir={work}/wk"
    _mount("-t", "overlay", "-o", layers, "overlay", work / "root")
    inside = work / "root"
    _mount("-t", "proc", "proc", inside / "proc")
    if not _mount("-t", "sysfs", "-o", "ro", "sys", inside / "sys", check=False):
        _mount("--bind", "/sys", inside / "sys")
    _devices(inside)
    for folder, options in (("run", "mode=755"), ("tmp", "mode=1777")):
        _mount("-t", "tmpfs", "-o", options, folder, inside / folder)
    _hierarchies(inside)
    for shared in folders:
        _show(shared, inside)
    etc = inside / "etc/systemd/system"
    for wants in etc.glob("*.wants"):
        shutil.rmtree(wants)
    _link(etc / "default.target", "/usr/lib/systemd/system/multi-user.target")
    for unit in _MASKED:
        _link(etc / f"{unit}.service", "/dev/null")
    (inside / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    wants = etc / "multi-user.target.wants"
    wants.mkdir()
    for path in units.iterdir():
        shutil.copy(path, etc / path.name)
        if "[Install]" in path.read_text():
            _link(wants / path.name, f"/etc/systemd/system/{path.name}")
    subprocess.run(["hostname", name[:60]], check=False)
    os.chdir(inside)
    (inside / "old").mkdir(exist_ok=True)
    subprocess.run(["pivot_root", ".", "old"], check=True)
    subprocess.run(["umount", "-l", "/old"], check=True)
    os.execve(  # noqa: S606 the first process of the namespaces
        SYSTEMD,
        [str(SYSTEMD), "--system", "--log-target=journal", "--show-status=0"],
        {"container": "namespace", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def _show(folder: Path, inside: Path) -> None:
    """Bind a folder where an overlay of / lacks it: on another file system, or below /tmp."""
    place = inside / folder.relative_to("/")
    if os.path.ismount(folder) or not place.exists():
        place.mkdir(parents=True, exist_ok=True)
        _mount("--bind", folder, place)


def _link(path: Path, target: str) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _devices(inside: Path) -> None:
    _mount("-t", "tmpfs", "-o", "mode=755", "dev", inside / "dev")
    for name in _DEVICES:
        if Path("/dev", name).exists():
            (inside / "dev" / name).touch()
            _mount("--bind", f"/dev/{name}", inside / "dev" / name)
    for name in ("pts", "shm"):
        (inside / "dev" / name).mkdir()
    options = "newinstance,ptmxmode=666,mode=620,gid=5"
    _mount("-t", "devpts", "-o", options, "devpts", inside / "dev/pts")
    _mount("-t", "tmpfs", "shm", inside / "dev/shm")
    (inside / "dev/ptmx").symlink_to("pts/ptmx")
    (inside / "dev/fd").symlink_to("/proc/self/fd")


def _hierarchies(inside: Path) -> None:
    """Every hierarchy again, seen from the new cgroup namespace."""
    place = inside / "sys/fs/cgroup"
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        _mount("-t", "cgroup2", "cgroup2", place)
        return
    _mount("-t", "tmpfs", "-o", "mode=755", "cgroups", place)
    for name in _CONTROLLERS:
        if Path("/sys/fs/cgroup", name).is_dir():
            (place / name).mkdir()
            _mount("-t", "cgroup", "-o", name, "cgroup", place / name)
    for name, kind in (("systemd", "cgroup"), ("unified", "cgroup2")):
        (place / name).mkdir()
        options = ["-o", "none,name=systemd"] if name == "systemd" else []
        _mount("-t", kind, *options, kind, place / name)


if __name__ == "__main__":
    _boot(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], [Path(each) for each in sys.argv[4:]])
