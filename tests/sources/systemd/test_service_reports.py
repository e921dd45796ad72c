"""Lines of kubelet, runtimes and time services, in their true forms, and ordinary ones."""

from __future__ import annotations

import pytest

from nodescope.records.details import read_details
from nodescope.records.event import details_of_kind
from nodescope.sources.systemd.service_reports import (
    parse_duration,
    parse_refusal,
    parse_report,
    service_of,
)

_REPORTS = [
    ("kubelet", ('E1117 09:19:25.917243    1234 kubelet.go:2412] "Skipping pod synchronization" '
     'err="PLEG is not healthy: pleg was last seen active 3m5.5s ago; threshold is 3m0s"'),
     "kubelet_unhealthy", {"reason": "PLEG is not healthy", "took_s": 185.5}),
    ("kubelet", ('E1117 kubelet.go:2412] "Skipping pod synchronization" err="container runtime is '
     'down"'), "kubelet_unhealthy", {"reason": "container runtime is down"}),
    ("k3s", ('time="2026-11-17" msg="x" E1117 controller.go:195] "Failed to update lease" '
     'err="Put https://10.0.0.1:6443: context deadline exceeded"'), "kubelet_unhealthy", {}),
    ("kubelet", ('W1117 eviction_manager.go:350] "Eviction manager: attempting to reclaim" '
     'resourceName="ephemeral-storage"'), "eviction", {"resource": "ephemeral-storage"}),
    ("kubelet", "eviction manager: attempting to reclaim memory", "eviction",
     {"resource": "memory"}),
    ("kubelet", ('I1117 eviction_manager.go:575] "Eviction manager: pod is evicted successfully" '
     'pod="team-a/train-0"'), "eviction", {"pod": "team-a/train-0"}),
    ("kubelet", ('I1117 prober.go:107] "Probe failed" probeType="Readiness" pod="web/api-7d9" '
     'podUID="ab" containerName="api" probeResult="failure" output="HTTP 503"'), "probe_failing",
     {"reason": "Readiness", "pod": "web/api-7d9"}),
    ("kubelet", 'prober.go:117] Liveness probe for "api_web(12ab):api" failed (failure): timeout',
     "probe_failing", {"pod": "api_web(12ab):api"}),
    ("kubelet", ("I1117 fsHandler.go:135] fs: disk usage and inodes count on following dirs took "
     "4.512s: [/var/lib/containers/x]; will not log again for this container unless duration "
     "exceeds 8s"), "disk_slow", {"took_s": 4.512}),
    ("containerd", ('time="2026-11-17" level=error msg="StartContainer for \"ab\" failed" '
     'error="failed to create containerd task: failed to create shim task: OCI runtime create '
     'failed: runc create failed: unable to start container process"'), "runtime_failing", {}),
    ("kubelet", ('E1117 pod_workers.go:1300] "Error syncing pod, skipping" err="failed to reserve '
     'container name \"x_y_z_0\": name is reserved" pod="d/x"'), "runtime_failing",
     {"pod": "d/x"}),
    ("containerd", 'level=warning msg="shim disconnected" id=ab12 namespace=k8s.io',
     "runtime_failing", {"reason": "shim disconnected"}),
    ("kubelet", ('E1117 "Error syncing pod" err="failed to \\"KillPodSandbox\\" for \\"1\\"" '
     'pod="d/x"'), "runtime_failing", {"pod": "d/x"}),
    ("dockerd", "returned error: readlink /var/lib/docker/overlay2/l: invalid argument",
     "runtime_failing", {}),
    ("abrt-notification", "Process 4711 (train) crashed in main()", "process_crash",
     {"pid": 4711, "comm": "train"}),
    ("abrt-notification", "System encountered a fatal error in panic_on_oops()", "kernel_panic",
     {}),
    ("abrt-notification", "System encountered a non-fatal error in ext4_evict_inode()",
     "kernel_oops", {}),
    ("smartd", "Device: /dev/sdc [SAT], 112 Currently unreadable (pending) sectors",
     "disk_failing", {"device": "sdc"}),
    ("smartd", "Device: /dev/sdc [SAT], FAILED SMART self-check. BACK UP DATA NOW!",
     "disk_failing", {"device": "sdc", "error": "FAILED SMART self-check"}),
    ("chronyd", "Can't synchronise: no selectable sources (2 unreachable sources)",
     "clock_unsynchronized", {}),
    ("systemd-oomd", ("Killed /system.slice/a.service due to memory used (16.2G) / total (16.5G) "
     "and swap used (2.0G) / total (2.1G) being more than 90.00%"), "oom_kill",
     {"memcg": "/system.slice/a.service", "whole_group": True}),
    ("systemd-coredump", "Process 4711 (train (x)) of user 1000 dumped core.", "process_crash",
     {"pid": 4711, "comm": "train (x)"}),
]  # fmt: skip


@pytest.mark.parametrize(("service", "line", "kind", "says"), _REPORTS)
def test_a_report_says_what_it_means(
    service: str, line: str, kind: str, says: dict[str, object]
) -> None:
    report = parse_report(service, line)
    assert report is not None
    assert report.kind == kind
    assert {**report.details, **says} == report.details
    assert read_details(details_of_kind(kind), dict(report.details)).others == {}


@pytest.mark.parametrize(
    ("service", "line"),
    [
        ("kubelet", ('"Skipping pod synchronization" err="[container runtime status check may not '
         'have completed yet, PLEG is not healthy: pleg has yet to be successful]"')),
        ("kubelet", '"Failed to update lease" err="Operation cannot be fulfilled on leases"'),
        ("kubelet", '"Started kubelet" version="v1.33"'),
        ("containerd", 'level=info msg="shim disconnected" id=ab12 namespace=k8s.io'),
        ("chronyd", "Selected source 169.254.169.123"),
        ("chronyd", "PLEG is not healthy: pleg was last seen active 3m ago"),
        ("systemd-oomd", "Monitoring /system.slice"),
    ],
)  # fmt: skip
def test_ordinary_lines_report_nothing(service: str, line: str) -> None:
    assert parse_report(service, line) is None


@pytest.mark.parametrize(
    ("unit", "service"),
    [
        ("kubelet.service", "kubelet"), ("kubelet", "kubelet"), ("containerd", "containerd"),
        ("snap.kubelet-eks.daemon.service", "kubelet"), ("nginx.service", None),
        ("systemd-coredump@3-12-0.service", "systemd-coredump"), ("", None),
    ],
)  # fmt: skip
def test_a_unit_is_the_service_by_its_name(unit: str, service: str | None) -> None:
    assert service_of(unit) == service


def test_durations_are_as_go_writes_them() -> None:
    assert parse_duration("1h2m3.5s") == 3723.5
    assert parse_duration("3m0s") == 180
    assert parse_duration("250ms") == 0.25
    assert parse_duration("soon") == 0


def test_a_hostile_line_costs_no_more_than_an_honest_one() -> None:
    for service, line, _, _ in _REPORTS:
        half = len(line) // 2
        parse_report(service, line[:half] * 2_000)
        parse_report(service, line[:half] + " " * 100_000 + line[half:])


@pytest.mark.parametrize(
    ("line", "resource"),
    [
        ("OSError: [Errno 24] Too many open files: '/srv/data/7'", "open files"),
        ("accept4(): too many open files; retrying in 1s", "open files"),
        ("failed to create fsnotify watcher: too many open files", "inotify instances"),
        ("inotify_add_watch /sys/fs/cgroup/x: no space left on device", "inotify watches"),
        ("fork/exec /usr/bin/runc: resource temporarily unavailable", "tasks"),
        ("runtime: failed to create new OS thread (have 17 already; errno=11)", "tasks"),
        ("RuntimeError: can't start new thread", "tasks"),
        ("-bash: fork: retry: Resource temporarily unavailable", "tasks"),
        ("java.lang.OutOfMemoryError: unable to create native thread", "tasks"),
    ],
)
def test_a_limit_of_a_programs_own_is_read_in_its_words(line: str, resource: str) -> None:
    report = parse_refusal(line)
    assert report is not None
    assert (report.kind, report.details["resource"]) == ("service_limit", resource)


@pytest.mark.parametrize(
    "line",
    [
        "write /var/log/app.log: no space left on device",
        "recv: Resource temporarily unavailable",
        "opened 12 files",
    ],
)
def test_what_other_refusals_mean_is_left_to_others(line: str) -> None:
    assert parse_refusal(line) is None
