"""A real systemd in namespaces of its own, over a throw-away overlay of this machine's root.

PID 1 of a test machine is often not systemd. Here it is PID 1 of fresh pid,
mount, uts, ipc, network and cgroup namespaces: bus, journal and units are real.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest
from tests.own_cgroups import join_cgroups, make_cgroups, remove_cgroups
from tests.waiting import wait_for

Value = TypeVar("Value")

_INNER = r"""
set -e
tree=$1; name=$2
mount --make-rprivate /
work=$(mktemp -d); mount -t tmpfs -o size=1g work "$work"; mkdir "$work/up" "$work/wk" "$work/root"
mount -t overlay -o lowerdir=/,upperdir="$work/up",workdir="$work/wk" overlay "$work/root"
r=$work/root
mount -t proc proc "$r/proc"
mount -t sysfs -o ro sys "$r/sys" 2>/dev/null || mount --bind /sys "$r/sys"
mount -t tmpfs -o mode=755 dev "$r/dev"
for d in null zero full random urandom tty; do
    touch "$r/dev/$d"; mount --bind "/dev/$d" "$r/dev/$d"
done
mkdir -p "$r/dev/pts" "$r/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts "$r/dev/pts"
ln -s pts/ptmx "$r/dev/ptmx"; ln -s /proc/self/fd "$r/dev/fd"
mount -t tmpfs shm "$r/dev/shm"
mount -t tmpfs -o mode=755 run "$r/run"; mount -t tmpfs tmp "$r/tmp"
if [ "$(stat -fc %T /sys/fs/cgroup)" = cgroup2fs ]; then
    mount -t cgroup2 cgroup2 "$r/sys/fs/cgroup"
else
    mount -t tmpfs -o mode=755 cgroups "$r/sys/fs/cgroup"
    for c in cpu cpuacct cpuset memory devices freezer blkio pids; do
        [ -d "/sys/fs/cgroup/$c" ] || continue
        mkdir "$r/sys/fs/cgroup/$c"; mount -t cgroup -o "$c" cgroup "$r/sys/fs/cgroup/$c"
    done
    mkdir "$r/sys/fs/cgroup/systemd" "$r/sys/fs/cgroup/unified"
    mount -t cgroup -o none,name=systemd cgroup "$r/sys/fs/cgroup/systemd"
    mount -t cgroup2 cgroup2 "$r/sys/fs/cgroup/unified"
fi
rm -rf "$r"/etc/systemd/system/*.wants "$r/var/log/journal"
ln -sf /usr/lib/systemd/system/multi-user.target "$r/etc/systemd/system/default.target"
for u in systemd-udevd systemd-udev-trigger systemd-resolved systemd-networkd \
         systemd-timesyncd systemd-logind networking getty@tty1 console-getty; do
    ln -sf /dev/null "$r/etc/systemd/system/$u.service"
done
echo 0123456789abcdef0123456789abcdef > "$r/etc/machine-id"
cp -a "$tree/." "$r/"
hostname "$name"; ip link set lo up 2>/dev/null || true
cd "$r"; mkdir -p old; pivot_root . old; umount -l /old
exec env -i container=namespace PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --system --log-target=journal --show-status=0
"""


class Guest:
    """One running systemd; `units` by name are there and enabled when it starts."""

    def __init__(self, folder: Path, units: Mapping[str, str], files: Mapping[str, str]) -> None:
        self._name = f"guest-{os.getpid()}-{time.monotonic_ns() % 1_000_000}"
        tree = folder / "tree"
        for name, text in units.items():
            _write(tree / "etc/systemd/system" / name, text)
            link = tree / "etc/systemd/system/multi-user.target.wants" / name
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"/etc/systemd/system/{name}")
        for relative, text in files.items():
            _write(tree / relative, text)
        tree.mkdir(parents=True, exist_ok=True)
        self._log = folder / "log"
        self._cgroups = make_cgroups(self._name)
        with open(self._log, "wb") as log:
            self._outer = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL"),  # nothing stays of a killed test run
                    *("unshare", "--pid", "--fork", "--mount", "--uts", "--ipc", "--net"),
                    *("--cgroup", "--kill-child", "bash", "-c", _INNER, "bash", tree, self._name),
                ],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=partial(join_cgroups, self._cgroups),
            )
        try:
            self.pid = self.wait_for(self._leader, "systemd is PID 1 of the guest")
            self.wait_for(self._answers, "the guest's systemd answers on its bus")
        except BaseException:
            self.stop()
            raise

    def wait_for(
        self, condition: Callable[[], Value | None], what: str, seconds: float = 90.0
    ) -> Value:
        """Return the first true answer; fail at once when the guest has ended."""
        return wait_for(condition, what, seconds, process=self._outer, log=self._log)

    def _leader(self) -> int | None:
        outer = self._outer.pid
        try:
            for child in Path(f"/proc/{outer}/task/{outer}/children").read_text().split():
                if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
        except OSError:
            pass  # it ended while we looked
        return None

    def _answers(self) -> bool:
        return self.run("systemctl", "show", "--property=Version", check=False).returncode == 0

    @property
    def root(self) -> Path:
        return Path(f"/proc/{self.pid}/root")

    @property
    def bus(self) -> str:
        return f"unix:path={self.root}/run/dbus/system_bus_socket"

    @property
    def journal(self) -> Path:
        return self.root / "run/log/journal"

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        """Run a command inside."""
        entering = ["nsenter", "--target", str(self.pid), "--all", "--"]
        return subprocess.run([*entering, *command], check=check, capture_output=True, timeout=120)

    def entries(self, unit: str, message_id: str) -> list[dict[str, Any]]:
        """What the guest's own journalctl says of a unit."""
        shown = self.run(
            "journalctl", "--output=json", "--no-pager", f"UNIT={unit}", f"MESSAGE_ID={message_id}"
        )
        return [json.loads(line) for line in shown.stdout.splitlines()]

    def stop(self) -> None:
        """End it, and leave nothing behind."""
        if self._outer.poll() is None:
            # its pid namespace goes with its first process: nothing in it can stay
            self._outer.send_signal(signal.SIGKILL)
            self._outer.wait(60)
        wait_for(partial(remove_cgroups, self._cgroups), "the guest's cgroups are removed")


def skip_without_namespaces() -> None:
    """Skip where this machine gives us none: a container, most often."""
    tried = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount", "--cgroup", "--net", "true"],
        check=False,
        capture_output=True,
    )
    if tried.returncode:
        pytest.skip(f"needs namespaces: {tried.stderr.decode('utf-8', 'replace').strip()}")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
