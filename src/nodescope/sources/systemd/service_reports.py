"""Reads what kubelet, container runtimes and time services report of themselves in log lines. Pure.

Read in kubernetes 1.20 to 1.33 (klog: older lines are plain words, newer ones `"Words" key="x"`),
containerd 1.6 to 2.1, chrony, systemd. Lines that every start of a kubelet writes, and that every
end of a container makes a runtime write, report nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LONGEST = 4096
_REASON = 200

_KUBELETS = frozenset({"kubelet", "k3s", "k3s-agent", "rke2-agent", "rke2-server", "kubelite"})
_RUNTIMES = frozenset({"containerd", "crio", "docker", "dockerd", "cri-docker"}) | _KUBELETS
_CLOCKS = frozenset({"chronyd", "chrony"})
_OOMD = frozenset({"systemd-oomd"})
_ABRT = frozenset({"abrt-notification"})
_SMART = frozenset({"smartd", "smartmontools"})
_COREDUMP = frozenset({"systemd-coredump"})


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """The meaning of a line: `kind` is one of `records.EVENT_KINDS`."""

    kind: str
    details: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    about: str = ""  # the subject; empty: the service itself


@dataclass(frozen=True, slots=True)
class _ReportRule:
    kind: str
    services: frozenset[str]
    pattern: re.Pattern[str]
    constants: Mapping[str, str | bool] = field(default_factory=dict)


def _rule(
    kind: str, services: frozenset[str], pattern: str, **constants: str | bool
) -> _ReportRule:
    return _ReportRule(kind, services, re.compile(pattern, re.ASCII | re.DOTALL), constants)


# A kubelet that starts says the first; one that lost a race for its lease, the second.
_ORDINARY = re.compile(
    r"may not have completed yet|pleg has yet to be successful|Operation cannot be fulfilled"
)
_POD = re.compile(r"\bpod=\"(?P<pod>[^\"\s]{1,320})\"", re.ASCII)
_DURATION = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,9}(?:\.\d{1,9})?)(s|ms))?")

_RULES = (
    _rule(
        "kubelet_unhealthy",
        _KUBELETS,
        r"(?P<reason>PLEG is not healthy): pleg was last seen active (?P<took>[\w.]{1,32}) ago",
    ),
    _rule("kubelet_unhealthy", _KUBELETS, r"(?P<reason>container runtime is down)"),
    _rule(
        "kubelet_unhealthy",
        _KUBELETS,
        r"(?P<reason>[Ss]kipping pod synchronization\b.{0,200})",
    ),
    _rule(
        "kubelet_unhealthy",
        _KUBELETS,
        r"(?P<reason>[Ff]ailed to (?:update|ensure) (?:node )?lease\b.{0,200})",
    ),
    _rule(
        "eviction",
        _KUBELETS,
        r"[Ee]viction manager: (?P<reason>attempting to reclaim|must evict pod\(s\) to reclaim)"
        r"(?:\" resourceName=\"| )(?P<resource>[\w./-]{1,64})",
    ),
    _rule(
        "eviction",
        _KUBELETS,
        r"[Ee]viction manager: (?P<reason>pod (?:\S{1,320} )?is evicted successfully)",
    ),
    _rule("probe_failing", _KUBELETS, r"Probe failed\" probeType=\"(?P<reason>\w{1,32})\""),
    _rule(  # up to 1.20
        "probe_failing",
        _KUBELETS,
        r"(?P<reason>Liveness|Readiness|Startup) probe for \"(?P<pod>[^\"\s]{1,320})\" failed",
    ),
    _rule(
        "disk_slow",
        _KUBELETS,
        r"(?P<reason>disk usage and inodes count|du and find) on following dirs took "
        r"(?P<took>[\w.]{1,32})",
    ),
    _rule(
        "runtime_failing",
        _RUNTIMES,
        r"(?P<reason>OCI runtime (?:create|start|exec) failed\b.{0,200})",
    ),
    _rule("runtime_failing", _RUNTIMES, r"(?P<reason>failed to reserve container name\b.{0,160})"),
    _rule(
        "runtime_failing", _RUNTIMES, r"(?P<reason>failed to setup network for sandbox\b.{0,160})"
    ),
    _rule(
        "runtime_failing", _RUNTIMES, r"(?P<reason>failed to \W{0,3}Kill(?:Container|PodSandbox)\b)"
    ),
    _rule(  # at a verbosity that few set
        "runtime_failing",
        _KUBELETS,
        r"(?P<reason>Pod still has one or more containers in the non-exited state)\b",
    ),
    _rule(
        "runtime_failing",
        _RUNTIMES,
        r"(?P<reason>error mounting [^\n]{0,200}?etc-hosts\b[^\n]{0,200}? to rootfs\b.{0,60})",
    ),
    _rule(  # a damaged store of images
        "runtime_failing",
        _RUNTIMES,
        r"(?P<reason>failed to register layer: rename \S{1,200} \S{1,200}: directory not empty|"
        r"readlink /var/lib/docker/overlay2\S{0,200}: invalid argument)",
    ),
    _rule(  # at the level `info` every container that ends is one
        "runtime_failing",
        _RUNTIMES,
        r"level=(?:warning|error)\b.{0,80}?msg=\"(?P<reason>shim disconnected)\"",
    ),
    _rule("clock_unsynchronized", _CLOCKS, r"(?P<reason>Can't synchronise: .{1,120})"),
    _rule(
        "oom_kill",
        _OOMD,
        r"\AKilled (?P<memcg>/\S{1,1024}) due to ",
        constraint="systemd-oomd",
        whole_group=True,
    ),
    _rule(
        "process_crash",
        _COREDUMP,
        r"\AProcess (?P<pid>\d{1,10}) \((?P<comm>.{1,64}?)\) of user \d+ (?P<reason>dumped core)",
    ),
    _rule(
        "process_crash",
        _ABRT,
        r"\AProcess (?P<pid>\d{1,10}) \((?P<comm>[^\s)]{1,64})\) (?:of user \d+ )?"
        r"(?P<reason>crashed in \S{1,100}|encountered an uncaught \S{1,64} exception)",
    ),
    _rule("process_crash", _ABRT, r"\ADisplay server (?P<comm>\S{1,64}) (?P<reason>crash) in "),
    _rule("kernel_panic", _ABRT, r"\ASystem encountered a (?P<reason>fatal error in \S{1,100})"),
    _rule("kernel_oops", _ABRT, r"\ASystem encountered a (?P<reason>non-fatal error in \S{1,100})"),
    _rule(
        "disk_failing",
        _SMART,
        r"Device: /dev/(?P<device>\S{1,64})(?: \[[^\]]{1,32}\])?, (?P<error>[1-9]\d{0,9} "
        r"(?:Currently unreadable \(pending\)|Offline uncorrectable) sectors)",
    ),
    _rule(
        "disk_failing",
        _SMART,
        r"Device: /dev/(?P<device>\S{1,64})(?: \[[^\]]{1,32}\])?, "
        r"(?P<error>FAILED SMART self-check|Failed SMART usage Attribute)",
    ),
)
# What any program logs when the kernel refuses it a file, a watch or a task.
_REFUSED = re.compile(
    r"too many open files|no space left on device|resource temporarily unavailable"
    r"|failed to create new OS thread|can't start new thread"
    r"|unable to create (?:new )?native thread",
    re.ASCII | re.IGNORECASE,
)
_WATCHES = re.compile(r"inotify|fsnotify", re.ASCII | re.IGNORECASE)
_TASKS = re.compile(r"\bfork\b|fork/exec|pthread_create|clone|thread", re.ASCII | re.IGNORECASE)
_SERVICES = frozenset[str]().union(*(each.services for each in _RULES))


def service_of(unit: str) -> str | None:
    """Return the service that a unit or a program is, if its lines are read; else None."""
    name = unit.removesuffix(".service").partition("@")[0]
    name = "kubelet" if name.startswith("snap.kubelet") else name
    return name if name in _SERVICES else None


def parse_refusal(text: str) -> ServiceReport | None:
    """Return the limit of its own that a program of any name reports; None for other lines."""
    found = _REFUSED.search(text[:_LONGEST])
    if found is None:
        return None
    words, near = found[0].lower(), text[max(0, found.start() - 160) : found.end() + 80]
    if words == "too many open files":
        resource = "inotify instances" if _WATCHES.search(near) else "open files"
    elif words == "no space left on device":
        if not _WATCHES.search(near):
            return None  # a full disk: the file system itself is looked at
        resource = "inotify watches"
    elif words == "resource temporarily unavailable" and not _TASKS.search(near):
        return None  # EAGAIN of a socket or a lock is no limit
    else:
        resource = "tasks"
    return ServiceReport("service_limit", {"reason": found[0], "resource": resource})


def parse_report(service: str, text: str) -> ServiceReport | None:
    """Return what a service reports in a line; None for a routine line."""
    text = text[:_LONGEST]
    for rule in _RULES:
        if service not in rule.services or (found := rule.pattern.search(text)) is None:
            continue
        if _ORDINARY.search(text):
            return None
        return _report(rule, found, text)
    return None


def _report(rule: _ReportRule, found: re.Match[str], text: str) -> ServiceReport:
    details: dict[str, str | int | float | bool] = dict(rule.constants)
    for name, value in found.groupdict().items():
        if value is None:
            continue
        if name == "took":
            details["took_s"] = parse_duration(value)
        else:
            details[name] = int(value) if name == "pid" else value[:_REASON].strip(' "\\')
    if rule.kind in ("eviction", "probe_failing", "runtime_failing"):
        pod = _POD.search(text)
        if pod is not None:
            details["pod"] = pod["pod"]
    about = details.get("comm") or details.get("memcg") or details.get("device", "")
    return ServiceReport(rule.kind, details, str(about))


def parse_duration(text: str) -> float:
    """Return the seconds of a duration as Go writes it: `3m5.1s`, `1.2s`, `1h2m3s`, `12ms`."""
    found = _DURATION.fullmatch(text)
    if found is None:
        return 0.0
    seconds = float(found[3] or 0) / (1000 if found[4] == "ms" else 1)
    return int(found[1] or 0) * 3600 + int(found[2] or 0) * 60 + seconds
