"""A node with what is needed and what is not: a real systemd, a real dockerd, real sockets."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import jeepney
from tests.waiting import wait_for

from nodescope.errors import UsageError
from nodescope.lab.docker_guest import IMAGE, UNITS, DockerGuest
from nodescope.lab.ground import Ground
from nodescope.lab.guest import Guest
from nodescope.records.json import Json
from nodescope.remedy.node_access import NodeAccess
from nodescope.sources.places import Places
from nodescope.sources.systemd.bus_names import read_bus_names

_PROGRAMS = Path(__file__).with_name("guard_programs.py")
_PACKAGES = Path(jeepney.__file__).parents[1]
_NAME = "org.example.Named"
_POLICY = f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><policy user="root"><allow own_prefix="{_NAME}"/></policy></busconfig>
"""
_SLEEPS = "/bin/sleep infinity"
_FAILS = "/bin/sh -c 'exit 3'"
_AGAIN = "Restart=always\nRestartSec=300ms\n"


def run_program(name: str, *arguments: object) -> str:
    """Return the command that runs a program of `guard_programs`."""
    words = (Path(sys.executable).resolve(), _PROGRAMS, name, *arguments)
    return " ".join(map(str, words))


def unit(command: str, service: str = "", section: str = "", install: str = "") -> str:
    """Return a unit file that systemd starts at boot, unless `install` says otherwise."""
    wanted = install or "WantedBy=multi-user.target"
    return (
        f"[Unit]\nStartLimitIntervalSec=0\n{section}[Service]\nExecStart={command}\n{service}"
        + (f"[Install]\n{wanted}\n" if wanted != "none" else "")
    )


_NEEDED = {
    "store.service": unit(_SLEEPS),
    "shop.service": unit(_SLEEPS, section="Requires=store.service\nAfter=store.service\n"),
    "deep.service": unit(_SLEEPS),
    "middle.target": "[Unit]\nRequires=deep.service\nAfter=deep.service\n",
    "top.service": unit(_SLEEPS, section="Requires=middle.target\nAfter=middle.target\n"),
    "store.timer": "[Timer]\nOnBootSec=1h\n[Install]\nWantedBy=timers.target\n",
    "bound.service": unit(_SLEEPS),
    "binder.service": unit(_SLEEPS, section="BindsTo=bound.service\nAfter=bound.service\n"),
    "shaky.service": unit("/bin/sh -c 'sleep 0.2; exit 3'", _AGAIN),
    "leaner.service": unit(_SLEEPS, section="Requires=shaky.service\n"),
    "part-owner.service": unit(_SLEEPS),
    "part.service": unit(_SLEEPS, section="PartOf=part-owner.service\n"),
    "web.service": unit(run_program("listen_tcp", 8080)),
    "web-client.service": unit(run_program("connect_tcp", 8080)),
    "quiet.service": unit(run_program("listen_tcp", 8081)),
    "agent-api.service": unit(run_program("listen_unix", "/run/agent-api.sock")),
    "agent-client.service": unit(run_program("connect_unix", "/run/agent-api.sock")),
    "held.socket": "[Socket]\nListenStream=/run/held.sock\n[Install]\nWantedBy=sockets.target\n",
    "held.service": unit(run_program("serve_activated"), install="none"),
    "held-client.service": unit(
        run_program("connect_unix", "/run/held.sock"), section="After=held.socket\n"
    ),
    "uplink.service": unit(_SLEEPS, section="Wants=network.target\nBefore=network.target\n"),
    "ticker.service": unit(_SLEEPS, section="Wants=time-sync.target\nBefore=time-sync.target\n"),
    "volume.service": unit(run_program("serve_files", "/run/volume")),
    "logins.service": unit(
        "/bin/sh -c 'systemd-run --scope --unit=session-7 sleep infinity; sleep infinity'"
    ),
    "named.service": unit(run_program("own_name", _NAME, _PACKAGES)),
    "silent.service": unit(run_program("own_name", f"{_NAME}.Silent", _PACKAGES)),
    "panel.service": unit(run_program("watch_name", _NAME, _PACKAGES)),
    "kubelet.service": unit(_FAILS, _AGAIN),
    "cron.service": unit(_SLEEPS),
    "flight.service": unit(
        f'/bin/bash -c "exec -a /usr/bin/nodescope {Path(sys.executable).resolve()} '
        "-c 'import time; time.sleep(3600)' record\""
    ),
}
_UNWANTED = {
    "ecs.service": unit(_FAILS, _AGAIN),
    "leaky.service": unit("/bin/sh -c 'head -c 4096 /dev/zero > /tmp/s-$$$$; exit 5'", _AGAIN),
    "supervisor.service": unit("/bin/sh -c 'while :; do sh -c \"sleep 0.3; exit 4\"; done'"),
    "idle.service": unit(_SLEEPS),
    "broken.service": unit(_FAILS),
    "off.service": unit(_SLEEPS, install="none"),
    "flapping.service": unit(run_program("listen_and_fail", 8082), _AGAIN),
    "grouped.service": unit(_FAILS, _AGAIN, install="RequiredBy=multi-user.target"),
    "shipper.service": unit(run_program("connect_unix", "/run/agent-api.sock")),
    "inner.service": unit(run_program("talk_to_itself", "/run/inner.sock")),
    "job.service": unit(_FAILS, install="none"),
    "job.timer": "[Timer]\nOnBootSec=1\nOnUnitInactiveSec=1\nAccuracySec=100ms\n"
    "[Install]\nWantedBy=timers.target\n",
    **{f"steady-{number}.service": unit(_SLEEPS) for number in range(6)},
    "maker.service": unit(run_program("make_anew", "docker", "run", "--name", "made-anew")),
    "monitor.service": unit(run_program("watch_docker", "made-anew")),
    "fan.service": unit(_SLEEPS, section="Wants=network.target\nAfter=network.target\n"),
}
_LOOP = ["sh", "-c", "exit 6"]
_LABELS = {
    "store-1": {"com.docker.compose.project": "shop", "com.docker.compose.service": "store"},
    "shop-1": {"com.docker.compose.project": "shop", "com.docker.compose.service": "shop",
               "com.docker.compose.depends_on": "store:service_started:false"},
    "k8s_proxy": {"io.kubernetes.pod.name": "proxy-x7", "io.kubernetes.container.name": "proxy",
                  "io.kubernetes.pod.namespace": "kube-system"},
    "task": {"com.amazonaws.ecs.task-arn": "arn:aws:ecs:eu-west-1:1:task/9"},
}  # fmt: skip


@dataclass(frozen=True)
class GuardedNode:
    """The node, and ways to look at it and to change it."""

    guest: Guest
    docker: DockerGuest
    access: NodeAccess

    @property
    def root(self) -> Path:
        """Return the root of its files."""
        return Path(f"/proc/{self.guest.pid}/root")

    def systemctl(self, *words: str) -> None:
        """Have its systemd do something, as a person would."""
        inside = ["nsenter", "--target", str(self.guest.pid), "--all", "--wd=/"]
        subprocess.run([*inside, "systemctl", *words], check=True, capture_output=True)

    def inspect(self, name: str) -> Mapping[str, Json]:
        """Return what dockerd says of a container."""
        found = self.docker.ask("GET", f"/containers/{name}/json")
        assert isinstance(found, dict)
        return found

    def run(self, name: str, command: list[str], **settings: Json) -> None:
        """Make a container and start it."""
        restart = settings.pop("restart", "no")
        labels: Json = settings.pop("labels", None) or _LABELS.get(name, {})
        host: dict[str, Json] = {
            "NetworkMode": "none", "RestartPolicy": {"Name": restart}, **settings
        }  # fmt: skip
        body: Json = {"Image": IMAGE, "Cmd": [*command], "HostConfig": host, "Labels": labels}
        with contextlib.suppress(UsageError):  # there is none, but of a test that failed before
            self.docker.ask("DELETE", f"/containers/{name}?force=1")
        self.docker.ask("POST", f"/containers/create?name={name}", body)
        self.docker.ask("POST", f"/containers/{name}/start")


@contextmanager
def make_guarded_node() -> Iterator[GuardedNode]:
    """Start it, and wait until everybody is where the table expects them."""
    with Ground() as ground:
        guest = Guest(ground, {**UNITS, **_NEEDED, **_UNWANTED}, [_PROGRAMS.parent, _PACKAGES])
        guest.enter("ip", "link", "set", "lo", "up")
        access = NodeAccess(Places(systemd_bus=guest.bus))
        try:
            node = GuardedNode(guest, DockerGuest(guest), access)
            (node.root / "etc/dbus-1/system.d/named.conf").write_text(_POLICY)
            node.systemctl("reload", "dbus.service")
            _start_containers(node)
            _wait(node)
            yield node
        finally:
            access.close()


def _start_containers(node: GuardedNode) -> None:
    node.run("looping", _LOOP, restart="always")
    node.run("batch", ["sleep", "3600"])
    node.run("page", ["sh", "-c", "/bin/busybox httpd -f -p 8000 -h /bin"])
    node.run("store-1", ["sleep", "3600"])
    node.run("shop-1", ["sleep", "3600"])
    node.run("net", ["sleep", "3600"])
    node.run("beside", ["sleep", "3600"], NetworkMode="container:net")
    node.run("done", ["true"])
    node.run("k8s_proxy", ["sleep", "3600"])
    node.run("task", ["sleep", "3600"])


def _wait(node: GuardedNode) -> None:
    for name in ("ecs", "leaky", "flapping", "grouped", "kubelet", "shaky"):
        wait_for(partial(loops, node, f"{name}.service"), f"{name} loops")
    wait_for(lambda: _state(node, "broken.service") == "failed", "broken.service failed")
    wait_for(lambda: _looped(node), "a container loops")
    wait_for(lambda: "session-7.scope" in _units(node), "somebody has a session")
    wait_for(lambda: "held.service" in _units(node), "a client woke the socket's service")
    mounts = Path(f"/proc/{node.guest.pid}/mountinfo")
    wait_for(lambda: "/run/volume" in mounts.read_text(), "a file system in user space is there")
    wait_for(lambda: _named(node) >= 2, "two have names on the bus")
    wait_for((node.root / "run/inner.sock").exists, "one talks to itself")


def _named(node: GuardedNode) -> int:
    names = read_bus_names(node.guest.bus)
    owned = [name for each in names.by_process.values() for name in each]
    asked = (names.watchers or {}).get(_NAME, ())
    return sum(name.startswith(_NAME) for name in owned) if asked else 0


def _units(node: GuardedNode) -> set[str]:
    return {each.name for each in node.access.manager.list_units() if each.active == "active"}


def loops(node: GuardedNode, name: str) -> bool:
    """Return whether a unit was restarted often enough to be called a loop."""
    return read_restarts(node, name) >= 4


def read_restarts(node: GuardedNode, name: str) -> int:
    """Return how often systemd started a unit again."""
    return node.access.manager.read_units([name])[name].restarts or 0


def _state(node: GuardedNode, name: str) -> str | None:
    return node.access.manager.read_units([name])[name].active


def _looped(node: GuardedNode) -> bool:
    count = node.inspect("looping").get("RestartCount")
    return isinstance(count, int) and count >= 4
