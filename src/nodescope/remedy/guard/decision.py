"""The guard: what a node cannot live without is refused, with the reason that was seen.

Evidence comes first: units that stop with it, roles in systemd's own graph, clients of its
sockets and bus names, mounts, what runs inside it. A list of names is the last resort, for
what is needed most when nobody is connected at the moment. What could not be seen counts as
used: then the person has to know. The decision is pure; `guard` reads the facts first, when
a plan is made and again before each of its steps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from nodescope.errors import SourceAbsent, SourceError
from nodescope.remedy.guard.container_surroundings import read_container_surroundings
from nodescope.remedy.guard.lowering import takes_away
from nodescope.remedy.guard.surroundings import Client, Surroundings
from nodescope.remedy.guard.unit_surroundings import read_unit_surroundings
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep, Refused, StepName

# Steps that end something, or keep it from coming back. Of the others, those are guarded as
# well that leave it with less than it has (`lowering`).
ENDING: frozenset[StepName] = frozenset(
    ("stop_unit", "disable_unit", "mask_unit", "stop_container", "set_restart_policy")
)
_SHOWN = 4  # names in one reason

# systemd.special(7): a unit that pulls one of these in, and comes before it, provides it.
_ROLES = {
    "network.target": "the node's network",
    "network-pre.target": "the firewall or other rules that must stand before the network",
    "nss-lookup.target": "the resolution of host names",
    "nss-user-lookup.target": "the names of users and groups",
    "time-sync.target": "the synchronisation of the clock",
    "time-set.target": "the setting of the clock",
    "local-fs-pre.target": "storage below local file systems",
    "remote-fs-pre.target": "storage below remote file systems",
    "cryptsetup-pre.target": "encrypted devices",
    "rpcbind.target": "the port mapper of RPC services",
    "ssh-access.target": "logins over SSH",
    "first-boot-complete.target": "the set-up at first boot",
}
# The last resort: what a node needs most when nobody is connected, by the names in use.
_LAST_RESORT = {
    "the kubelet: it runs the pods of this node":
        "kubelet k3s k3s-agent rke2-server rke2-agent snap.microk8s.daemon-kubelite",
    "a container runtime":
        "docker containerd crio cri-docker podman snap.docker.dockerd "
        "snap.microk8s.daemon-containerd",
    "the way into this node": "ssh sshd getty@tty1 serial-getty@ttyS0",
    "the message bus": "dbus dbus-broker",
    "the node's network":
        "NetworkManager networking network wicked wickedd dhcpcd dhclient connman ifup@eth0 "
        "cloud-init cloud-init-local calico-node cilium flanneld",
    "the synchronisation of the clock": "chronyd chrony ntpd ntp ntpsec openntpd",
    "storage":
        "lvm2-monitor lvm2-lvmpolld dm-event multipathd iscsid open-iscsi nfs-server "
        "nfs-mountd rpc-statd rpc-gssd rpcbind autofs mdmonitor ceph-osd zfs-zed",
    "other people's scheduled jobs": "cron crond atd anacron cronie",
    "authorisations of other services": "polkit sssd nscd",
    "the log of this node": "rsyslog syslog-ng auditd",
}  # fmt: skip
_BY_NAME = {name: what for what, names in _LAST_RESORT.items() for name in names.split()}
_NEVER_KINDS = {
    "slice": "it groups other units, which would all stop",
    "target": "it groups other units and orders their start",
    "mount": "it is a file system that others may use",
    "automount": "it is a file system that others may use",
    "swap": "it holds memory of running programs",
    "device": "it is a device, which the kernel adds and removes",
}


def guard(
    step: PlanStep, node: NodeAccess, i_know: Collection[str] = frozenset()
) -> Refused | None:
    """Return why the node needs what a step would end or lower; None if it may be taken."""
    target = step.target
    if not is_guarded(target.kind):
        return None
    ends = step.kind in ENDING
    if not ends and not takes_away(step, node):
        return None
    if not target.name:
        return Refused(target, f"{step.kind} has no target: nothing is ended without a name")
    try:
        if target.kind == "unit":
            surroundings = read_unit_surroundings(target.name, node)
        else:
            surroundings = read_container_surroundings(target, node)
    except SourceAbsent as error:
        return Refused(target, f"there is nothing to change: {error}")
    except SourceError as error:
        if target.name in i_know:
            return None
        return Refused(target, f"who needs {target.name} cannot be seen: {error}", target.name)
    reasons, override = decide(surroundings, ends=ends)
    if not reasons or (override and override in i_know):
        return None
    less = "" if ends else "it would get less than it has, and "
    return Refused(target, f"{target.name}: {less}{'; '.join(reasons)}", override)


def is_guarded(kind: str) -> bool:
    """Return whether the guard knows how to judge this kind of target."""
    return kind in ("unit", "container", "pod")


def decide(facts: Surroundings, *, ends: bool = True) -> tuple[tuple[str, ...], str]:
    """Return the reasons not to end (or lower) it, and the name that `--i-know` needs.

    Without a name it is never done.
    """
    never = _never(facts, ends)
    if never:
        return never, ""
    reasons = (*_depended_on(facts, ends), *_talked_to(facts), *_keeps(facts))
    if facts.kind == "unit" and not reasons:
        reasons = _role_by_name(facts)
    if facts.unseen:
        reasons = (*reasons, f"not seen: {_listed(facts.unseen)}")
    return reasons, facts.name


def _never(facts: Surroundings, ends: bool) -> tuple[str, ...]:
    """Return why it is never ended: ourselves, what undoing needs, what is declared elsewhere."""
    if facts.ours:
        return (facts.ours,)
    if facts.declared:
        return (facts.declared,)
    if facts.kind != "unit":
        return ()
    suffix = facts.name.rpartition(".")[2]
    if facts.name == "init.scope":
        return ("it is systemd itself",)
    if suffix in _NEVER_KINDS and not ends:
        return ("it is no service: others would get less as well",)
    if suffix in _NEVER_KINDS:
        also = f" ({_listed(facts.stops_with)})" if facts.stops_with else ""
        return (f"{_NEVER_KINDS[suffix]}{also}",)
    if any(each.endswith("/system_bus_socket") for each in facts.listens):
        return ("it is the message bus: without it nothing here could be undone",)
    return ()


def _depended_on(facts: Surroundings, ends: bool) -> Iterable[str]:
    if facts.stops_with and ends:
        yield f"systemd would stop {_listed(facts.stops_with)} with it"
    elif facts.stops_with:
        yield f"{_listed(facts.stops_with)} requires it"
    if facts.shared_by:
        yield f"{_listed(facts.shared_by)} depends on it"
    roles = [_ROLES[target] for target in facts.provides if target in _ROLES]
    if roles:
        named = [target for target in facts.provides if target in _ROLES]
        yield f"it provides {_listed(roles)} ({', '.join(named)})"


def _talked_to(facts: Surroundings) -> Iterable[str]:
    if facts.clients:
        yield f"in use: {_listed([_describe(each) for each in facts.clients])}"
    elif facts.runs_well and facts.listens:
        yield f"it runs well and listens on {_listed(facts.listens)}, though nobody is connected"
    if facts.watchers:
        yield f"{_listed(facts.watchers)} asked the bus for its signals"
    elif facts.runs_well and facts.bus_names:
        yield f"it runs well as {_listed(facts.bus_names)} on the bus; who calls it is not visible"
    if facts.runs_well and facts.reaches and not facts.clients:
        yield f"it runs well and is connected to {_listed(facts.reaches)}"


def _keeps(facts: Surroundings) -> Iterable[str]:
    if facts.mounts:
        yield f"it answers for file systems: {_listed(facts.mounts)}"
    if facts.runs_inside:
        yield f"it keeps {_listed(facts.runs_inside)}"


def _role_by_name(facts: Surroundings) -> tuple[str, ...]:
    """Return the role that only a name tells: of the unit, or of a program in it."""
    stem = facts.name.rpartition(".")[0]
    if stem.startswith("systemd-") and facts.name.endswith((".service", ".socket")):
        return ("it is a part of systemd",)
    if facts.name.endswith(".scope"):
        return ("it holds processes that somebody else started",)
    what = _BY_NAME.get(stem)
    by = f"by its name, it is {what}" if what else ""
    for program in facts.programs:
        if not by and program in ("kubelet", "sshd", "dbus-daemon", "dbus-broker"):
            what = "kubelet" if program == "kubelet" else "ssh" if program == "sshd" else "dbus"
            by = f"by its program {program}, it is {_BY_NAME[what]}"
    return (by,) if by else ()


def _describe(client: Client) -> str:
    times = f" ({client.count} connections)" if client.count > 1 else ""
    return f"{client.who} is connected to {client.at}{times}"


def _listed(names: Iterable[str]) -> str:
    """Return names in one phrase, the first few of many."""
    given = list(dict.fromkeys(names))
    more = len(given) - _SHOWN
    shown = given[:_SHOWN] if more > 1 else given[: _SHOWN + 1]
    return ", ".join(shown) + (f" and {more} more" if more > 1 else "")
