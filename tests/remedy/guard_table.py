"""The table of the guard: forty and more units and containers, each with the right verdict.

`docs/fix-guard.md` shows it to people; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from nodescope.remedy.plan import Refused

Verdict = Literal["allowed", "demanded", "never"]


@dataclass(frozen=True)
class Row:
    """One unit or container, and the judgement that is right."""

    name: str
    what: str
    verdict: Verdict
    reason: str = ""  # a part of the reason that the guard must give

    def check(self, refused: Refused | None) -> None:
        """Fail unless the guard judged so."""
        if self.verdict == "allowed":
            assert refused is None, refused
            return
        assert refused is not None, f"{self.name} was allowed"
        assert self.reason in refused.reason
        assert refused.override == (self.name if self.verdict == "demanded" else "")


def _rows(verdict: Verdict, *rows: tuple[str, str, str]) -> tuple[Row, ...]:
    return tuple(Row(name, what, verdict, reason) for name, what, reason in rows)


UNITS = (
    *_rows(
        "allowed",
        ("ecs.service", "an agent by its name; it loops, and nobody is connected", ""),
        ("leaky.service", "loops and leaves a zombie each time", ""),
        ("supervisor.service", "runs on while its child fails again and again", ""),
        ("idle.service", "runs; listens on nothing, serves nobody", ""),
        ("broken.service", "failed, and stays so", ""),
        ("off.service", "not started", ""),
        ("flapping.service", "loops; listens for a moment each time", ""),
        ("grouped.service", "loops; only `multi-user.target` requires it", ""),
        ("shipper.service", "a client of others, and nobody's server", ""),
        ("inner.service", "its processes talk to each other alone", ""),
        ("job.timer", "starts a job that fails every second", ""),
        ("fan.service", "waits for the network, and does not provide it", ""),
        ("shop.service", "requires another; nobody requires it", ""),
        ("panel.service", "only listens to others on the bus", ""),
    ),
    *_rows(
        "demanded",
        ("store.service", "another service requires it", "would stop shop.service with it"),
        ("deep.service", "required through a target", "would stop top.service with it"),
        ("bound.service", "another service is bound to it", "would stop binder.service with it"),
        ("shaky.service", "loops, but is required", "would stop leaner.service with it"),
        ("part-owner.service", "another is part of it", "would stop part.service with it"),
        ("web.service", "has a TCP client", "web-client.service is connected to tcp:8080"),
        ("quiet.service", "listens; nobody connected now", "listens on tcp:8081"),
        ("agent-api.service", "has clients on a Unix socket",
         "agent-client.service is connected to unix:/run/agent-api.sock"),
        ("held.socket", "a socket unit with a client",
         "held-client.service is connected to unix:/run/held.sock"),
        ("uplink.service", "provides `network.target`", "the node's network (network.target)"),
        ("ticker.service", "provides `time-sync.target`", "the synchronisation of the clock"),
        ("named.service", "another listens for its signals on the bus",
         "panel.service asked the bus for its signals"),
        ("silent.service", "has a name on the bus", "org.example.Named.Silent on the bus"),
        ("volume.service", "serves a file system in user space", "file systems: /run/volume"),
        ("logins.service", "somebody's session runs below it", "keeps session session-7.scope"),
        ("systemd-journald.service", "everybody logs to it", "is connected to unix:/run/systemd"),
        ("docker.service", "runs wanted containers", "it keeps container"),
        ("containerd.service", "docker talks to it",
         "docker.service is connected to unix:/run/containerd/containerd.sock"),
        ("kubelet.service", "loops; the last resort", "by its name, it is the kubelet"),
        ("cron.service", "runs other people's jobs; the last resort", "by its name"),
        ("session-7.scope", "somebody's session", "processes that somebody else started"),
    ),
    *_rows(
        "never",
        ("dbus.service", "undo needs it", "the message bus"),
        ("system.slice", "all services are in it", "it groups other units"),
        ("multi-user.target", "orders the start of others", "it groups other units"),
        ("init.scope", "systemd itself", "systemd itself"),
        ("flight.service", "the recorder", "it is the recorder"),
    ),
)  # fmt: skip
CONTAINERS = (
    *_rows(
        "allowed",
        ("looping", "its engine restarts it for ever", ""),
        ("batch", "runs; listens on nothing, serves nobody", ""),
        ("shop-1", "depends on others; nobody depends on it", ""),
        ("done", "ended", ""),
    ),
    *_rows(
        "demanded",
        ("page", "runs well and listens", "listens on tcp:8000"),
        ("store-1", "another of its compose project depends on it", "container shop-1 depends"),
        ("net", "another container uses its network", "container beside depends on it"),
    ),
    *_rows(
        "never",
        ("k8s_proxy", "a pod's", "the pod kube-system/proxy-x7"),
        ("task", "a task of ECS", "change its task definition"),
    ),
)  # fmt: skip
# On the processes of a real kubelet, containerd and their pods, recorded
# (`kubelet_surroundings.json`).
KUBELET = (
    *_rows(
        "demanded",
        ("kubelet.service", "the pods of the node are its own", "it keeps pod"),
        ("containerd.service", "the kubelet is its client, pods run below it",
         "process kubelet"),
        ("etcd.service", "the API server is its client", "is connected to tcp:2379"),
        ("kube-apiserver.service", "kubelet and controllers are its clients", "process kubelet"),
    ),
    *_rows(
        "never",
        ("crashing", "a pod's, and it loops", "the pod default/crashing"),
        ("web", "of a deployment", "of the deployment web"),
        ("proxy", "of a daemon set", "kube-system/proxy-"),
    ),
)  # fmt: skip
