"""The gate of images: a real Debian root with daemons that start by default, and an rpm root.

Debian: debootstrap, then 14 packages that start a daemon without being asked, and six planted
defaults (a preset, a socket, a timer, `@reboot` of cron, rc.local, a container with
`restart=always`). rpm: packages built by rpmbuild and installed by rpm into a root with the unit
files of that Debian's systemd. Every decoy must be found and nothing else. `NODESCOPE_IMAGES` names
a folder that keeps the Debian root for the next run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.cli.image_roots import SERVICE, UNITS, add_container, enable, write

from benchmarks.results import Bar, Grid, Options, Result

_SUITE = "bookworm"
_SYSTEM = ("systemd-sysv", "init", "ifupdown", "netbase", "cron", "logrotate", "systemd-timesyncd")
# A package, and everything of it (and of what it brings along) that a boot starts.
_DECOYS = {
    "openssh-server": {"ssh.service"},
    "rsyslog": {"rsyslog.service"},
    "exim4-daemon-light": {"exim4.service", "exim4-base.timer"},
    "nginx-light": {"nginx.service"},
    "apache2": {"apache2.service", "/etc/cron.daily/apache2"},
    "avahi-daemon": {"avahi-daemon.service", "avahi-daemon.socket"},
    "cups": {"cups.service", "cups.socket", "cups.path"},
    "rpcbind": {"rpcbind.service", "rpcbind.socket"},
    "snmpd": {"snmpd.service"},
    "memcached": {"memcached.service"},
    "redis-server": {"redis-server.service"},
    "docker.io": {"docker.service", "docker.socket", "containerd.service"},
    "prometheus-node-exporter": {"prometheus-node-exporter.service"},
    "smartmontools": {"smartmontools.service"},
}
_SPEC = """\
Name: {name}
Version: 1.0
Release: 1
Summary: x
License: x
BuildArch: noarch
AutoReqProv: no
%description
x
%install
cp -a {tree}/. %{{buildroot}}/
{post}
%files
{files}
"""


def run(_options: Options) -> Result:
    """Audit both roots; what cannot be made here is named and not judged."""
    bars: list[Bar] = []
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        debian = _debian_root(Path(folder), notes)
        if debian is not None:
            image = Path(folder) / "planted"
            subprocess.run(["cp", "-a", "--reflink=auto", str(debian), str(image)], check=True)
            _judge("Debian", image, dict(_DECOYS), _plant(image), bars, rows)
            if shutil.which("rpmbuild") is None:
                notes.append("rpm root: not made, the package rpm is not installed")
            else:
                root, decoys = _rpm_root(Path(folder), debian)
                _judge("rpm", root, decoys, _plant(root), bars, rows)
    head = ("image", "decoys found", "planted found", "invented", "base system", "seconds")
    return Result(tuple(bars), (Grid("Images", head, tuple(rows)),), tuple(notes))


def _debian_root(folder: Path, notes: list[str]) -> Path | None:
    kept = os.environ.get("NODESCOPE_IMAGES")
    root = Path(kept or folder) / "debian-gate"
    if (root / "etc/machine-id").exists():
        return root
    if shutil.which("debootstrap") is None:
        notes.append("no image: debootstrap is not installed")
        return None
    print("making a Debian root: a minute or two", flush=True)
    debootstrap = ["debootstrap", "--variant=minbase", _SUITE, str(root)]
    subprocess.run(debootstrap, check=True, stdout=subprocess.DEVNULL)
    write(root, "usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)  # nothing starts there
    shutil.copy("/etc/resolv.conf", root / "etc/resolv.conf")
    install = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", *_SYSTEM, *_DECOYS]
    subprocess.run(
        ["chroot", str(root), "env", "DEBIAN_FRONTEND=noninteractive", *install],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return root


def _plant(root: Path) -> set[str]:
    """Plant six defaults, each of its own kind; return their names."""
    for name in ("bench-preset.service", "bench-socket.service", "bench-timer.service"):
        write(root, f"{UNITS}/{name}", SERVICE)
    write(root, "usr/lib/systemd/system-preset/50-bench.preset", "enable bench-preset.service\n")
    enable(root, "bench-preset.service")
    write(root, f"{UNITS}/bench-socket.socket", "[Socket]\nListenStream=9999\n")
    enable(root, "bench-socket.socket", "sockets.target")
    write(root, f"{UNITS}/bench-timer.timer", "[Timer]\nOnBootSec=1\n")
    enable(root, "bench-timer.timer", "timers.target")
    write(root, "etc/cron.d/bench", "@reboot root /opt/bench\n")
    write(root, "etc/rc.local", "#!/bin/sh\n/opt/bench &\n", 0o755)
    add_container(root, "bench", "always")
    return {"bench-preset.service", "bench-socket.socket", "bench-timer.timer", "/etc/cron.d/bench",
            "/etc/rc.local", "bench"}  # fmt: skip


def _judge(
    name: str, root: Path, decoys: dict[str, set[str]], planted: set[str],
    bars: list[Bar], rows: list[tuple[str, ...]],
) -> None:  # fmt: skip
    begun = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "nodescope.cli.main", "audit", "--root", str(root), "--format",
         "json"], capture_output=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - begun
    document = json.loads(ran.stdout)
    found = {each["name"] for each in document["findings"]}
    missed = {name for name, starts in decoys.items() if not starts <= found}
    invented = found - planted - set().union(*decoys.values())
    told = f"{len(decoys) - len(missed)} of {len(decoys)}"
    rows.append((name, told, f"{len(planted & found)} of {len(planted)}", str(len(invented)),
                 str(document["base_system"]), f"{seconds:.1f}"))  # fmt: skip
    shown = f"; missed {sorted(missed | (planted - found))}" if missed or planted - found else ""
    complete = not missed and planted <= found
    bars += [
        Bar(f"{name}: decoys and planted defaults", "all found", f"{told}{shown}", complete),
        Bar(f"{name}: invented", "none", ", ".join(sorted(invented)) or "none", not invented),
        Bar(f"{name}: time", "at most 10 s", f"{seconds:.1f} s", seconds <= 10),
    ]


# -- rpm -----------------------------------------------------------------------------


def _rpm_root(folder: Path, debian: Path) -> tuple[Path, dict[str, set[str]]]:
    """Build and install packages: systemd as it is, cron protected, twelve decoys."""
    root = folder / "rpm-root"
    packages = [_build(folder, "systemd", _systemd_tree(folder, debian), "")]
    cron = folder / "tree-cronie"
    write(cron, f"{UNITS}/crond.service", SERVICE)
    write(cron, "etc/dnf/protected.d/cronie.conf", "cronie\n")
    packages.append(_build(folder, "cronie", cron, _post("preset", "crond")))
    presets = "".join(f"enable decoy-{number}.service\n" for number in range(6))
    preset_tree = folder / "tree-release"
    preset = f"enable crond.service\n{presets}disable *\n"
    write(preset_tree, "usr/lib/systemd/system-preset/90-default.preset", preset)
    packages.append(_build(folder, "release", preset_tree, ""))
    decoys = {}
    for number in range(12):
        name = f"decoy-{number}"
        tree = folder / f"tree-{name}"
        write(tree, f"{UNITS}/{name}.service", SERVICE)
        packages.append(
            _build(folder, name, tree, _post("preset" if number < 6 else "enable", name))
        )
        decoys[name] = {f"{name}.service"}
    rpm = ["rpm", "--root", str(root), "--dbpath", "/var/lib/rpm"]
    (root / "var/lib/rpm").mkdir(parents=True)
    install = [*rpm, "-i", "--nodeps", "--noscripts", *map(str, packages)]
    subprocess.run(install, check=True, capture_output=True)
    for name in ("crond", *decoys):  # as their scripts do where systemd is at hand
        enable(root, f"{name}.service")
    write(root, "etc/machine-id", "0123456789abcdef0123456789abcdef\n")
    return root, decoys


def _post(verb: str, name: str) -> str:
    return f"%post\nsystemctl --no-reload {verb} {name}.service || :"


def _systemd_tree(folder: Path, debian: Path) -> Path:
    """Return the files of Debian's systemd, as a tree to package."""
    tree = folder / "tree-systemd"
    listed = (debian / "var/lib/dpkg/info/systemd.list").read_text().splitlines()
    for path in listed:
        source = debian / path.lstrip("/")
        if "/systemd/" in path and (source.is_symlink() or source.is_file()):
            copied = tree / path.lstrip("/").replace("lib/", "usr/lib/", path.startswith("/lib/"))
            copied.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                copied.symlink_to(os.readlink(source))
                continue
            if source.read_bytes()[:4] == b"\x7fELF":  # a package for all machines has none
                write(copied.parent, copied.name, "#!/bin/true\n", 0o755)
            else:
                shutil.copy(source, copied)
    return tree


def _build(folder: Path, name: str, tree: Path, post: str) -> Path:
    files = "\n".join(
        f'"/{path.relative_to(tree)}"' for path in sorted(tree.rglob("*")) if not path.is_dir()
    )
    spec = folder / f"{name}.spec"
    spec.write_text(_SPEC.format(name=name, tree=tree, post=post, files=files))
    out = folder / "rpms"
    quiet = ["--define", "__os_install_post %{nil}", "--define", "debug_package %{nil}"]
    subprocess.run(
        ["rpmbuild", "-bb", *quiet, "--define", f"_topdir {folder}/build", "--define",
         f"_rpmdir {out}", str(spec)], check=True, capture_output=True,
    )  # fmt: skip
    return next(out.rglob(f"{name}-1.0-1*.rpm"))
