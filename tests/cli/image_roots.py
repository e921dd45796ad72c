"""Small roots of images: units, packages, and everything else that a first boot starts."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path

UNITS = "usr/lib/systemd/system"
ETC = "etc/systemd/system"
SERVICE = "[Service]\nExecStart=/bin/agent\n[Install]\nWantedBy=multi-user.target\n"
BASE = {
    "graphical.target": "[Unit]\nRequires=multi-user.target\nWants=display-manager.service\n",
    "multi-user.target": "[Unit]\nRequires=basic.target\n",
    "basic.target": "[Unit]\nRequires=sysinit.target\nWants=sockets.target timers.target\n",
    "sysinit.target": "[Unit]\nWants=journal.service\n",
    "sockets.target": "[Unit]\n",
    "timers.target": "[Unit]\n",
    "journal.service": "[Unit]\nWants=bus.socket\n[Service]\nExecStart=/bin/journal\n",
    "cron.service": "[Service]\nExecStart=/usr/sbin/cron\n[Install]\nWantedBy=multi-user.target\n",
}
BUS = {
    "bus.socket": "[Socket]\nListenStream=/run/bus\n",
    "bus.service": "[Service]\nExecStart=/b\n",
}
GENERATORS = "usr/lib/systemd/system-generators"


def write(root: Path, path: str, text: str, mode: int = 0o644) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


def enable(root: Path, name: str, target: str = "multi-user.target") -> None:
    link = root / ETC / f"{target}.wants" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"/{UNITS}/{name}")


def make_base(root: Path, machine_id: str | None = "0123456789abcdef0123456789abcdef\n") -> Path:
    """Make a root with systemd, a bus that it needs, cron, and no package database."""
    for name, text in (BASE | BUS).items():
        write(root, f"{UNITS}/{name}", text)
    (root / UNITS / "default.target").symlink_to("graphical.target")
    for name in ("systemd-sysv-generator", "systemd-rc-local-generator"):
        write(root, f"{GENERATORS}/{name}", "#!/bin/true\n", 0o755)
    write(root, "usr/lib/systemd/systemd", "ELF", 0o755)
    enable(root, "cron.service")
    if machine_id is not None:
        write(root, "etc/machine-id", machine_id)
    return root


BASE_FILES = (
    "/usr/lib/systemd/systemd",
    *(f"/{UNITS}/{name}" for name in BASE if name != "cron.service"),
    *(f"/{GENERATORS}/{name}" for name in ("systemd-sysv-generator", "systemd-rc-local-generator")),
)


def add_dpkg(root: Path, name: str, files: tuple[str, ...], **fields: str) -> None:
    """Add a package to dpkg's records."""
    more = {key.replace("_", "-"): value for key, value in fields.items()}
    known = {"Package": name, "Status": "install ok installed", "Priority": "optional"}
    known |= {"Version": "1.0-1", **more}
    status = root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True, exist_ok=True)
    with status.open("a") as file:
        file.write("".join(f"{key}: {value}\n" for key, value in known.items()) + "\n")
    write(root, f"var/lib/dpkg/info/{name}.list", "".join(f"{path}\n" for path in files))


def enable_by_script(root: Path, name: str, target: str = "multi-user.target") -> None:
    """Enable a unit as deb-systemd-helper does."""
    enable(root, name, target)
    write(root, f"var/lib/systemd/deb-systemd-helper-enabled/{target}.wants/{name}", "")


def make_debian(root: Path, machine_id: str | None = "0123456789abcdef0123456789abcdef\n") -> Path:
    """Make a root of dpkg: systemd and cron are important, the bus is what systemd needs."""
    make_base(root, machine_id)
    add_dpkg(root, "systemd", BASE_FILES, Priority="important")
    add_dpkg(root, "cron", ("/lib/systemd/system/cron.service",), Priority="important")
    add_dpkg(root, "bus", tuple(f"/{UNITS}/{name}" for name in BUS), Priority="standard")
    return root


def rpm_header(name: str, files: tuple[str, ...], requires: tuple[str, ...] = (), script: str = "",
               source: str = "") -> bytes:  # fmt: skip
    """Return a header as rpm's database keeps it."""
    folders = sorted({path.rpartition("/")[0] + "/" for path in files})
    indexes = [folders.index(path.rpartition("/")[0] + "/") for path in files]
    text, array, number = 6, 8, 4
    tags: list[tuple[int, int, list[str] | list[int]]] = [
        (1000, text, [name]), (1001, text, ["1.0"]), (1002, text, ["1"]),
        (1044, text, [f"{source or name}-1.0-1.src.rpm"]), (1024, text, [script]),
        (1047, array, [name]), (1049, array, list(requires)), (1116, number, indexes),
        (1117, array, [path.rpartition("/")[2] for path in files]), (1118, array, folders),
    ]  # fmt: skip
    index, store = b"", b""
    for tag, kind, values in tags:
        if values:
            store += b"\0" * (-len(store) % 4)
            index += struct.pack(">IIII", tag, kind, len(store), len(values))
            if kind == number:
                store += struct.pack(f">{len(values)}I", *values)
            else:
                store += b"".join(str(value).encode() + b"\0" for value in values)
    return struct.pack(">II", len(index) // 16, len(store)) + index + store


def make_rpm_database(root: Path, headers: list[bytes], folder: str = "var/lib/rpm") -> Path:
    path = root / folder / "rpmdb.sqlite"
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
    connection.executemany("INSERT INTO Packages (blob) VALUES (?)", [(each,) for each in headers])
    connection.commit()
    connection.close()
    return path


def add_container(root: Path, name: str, policy: str, **config: object) -> None:
    """Add a container as dockerd keeps it."""
    folder = f"var/lib/docker/containers/{name * 8}"
    fields = {"ID": name * 8, "Name": f"/{name}", "Config": {"Image": f"example/{name}:1"},
              "State": {"ExitCode": 0}, **config}  # fmt: skip
    write(root, f"{folder}/config.v2.json", json.dumps(fields))
    write(root, f"{folder}/hostconfig.json", json.dumps({"RestartPolicy": {"Name": policy}}))


def plant(root: Path) -> set[str]:
    """Plant the six defaults that nobody asked for, and return their names."""
    for name in ("planted-preset.service", "planted.service", "sweep.service"):
        write(root, f"{UNITS}/{name}", SERVICE)
    write(root, "usr/lib/systemd/system-preset/50-x.preset", "enable planted-preset.service\n")
    enable(root, "planted-preset.service")
    write(root, f"{UNITS}/planted.socket", "[Socket]\nListenStream=9999\n")
    enable(root, "planted.socket", "sockets.target")
    write(root, f"{UNITS}/sweep.timer", "[Timer]\nOnBootSec=1\n")
    enable(root, "sweep.timer", "timers.target")
    write(root, "etc/cron.d/planted", "PATH=/bin\n# note\n@reboot root /opt/beacon --now\n")
    write(root, "etc/rc.local", "#!/bin/sh -e\n/opt/agent &\nexit 0\n", 0o755)
    add_container(root, "ecsagent", "always")
    return {"planted-preset.service", "planted.socket", "sweep.timer", "/etc/cron.d/planted",
            "/etc/rc.local", "ecsagent"}  # fmt: skip
