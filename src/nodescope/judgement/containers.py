"""Which containers fail, loop or never succeeded: verdicts on what runtimes and recordings say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nodescope.judgement.container_loops import STOPPED, ContainerLoop, find_loops
from nodescope.judgement.loop_rules import (
    CONTAINER_WITHIN_NS,
    LEAST_TIMES,
    STEADY_NS,
    decide_by_counter,
)
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event import Event
from nodescope.records.event_details import ContainerDetails, ContainerExitDetails
from nodescope.records.json import Json
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind

_KINDS = {
    "container_started": HappeningKind.STARTED,
    "container_restart": HappeningKind.STARTED,
    "container_exit": HappeningKind.EXITED,
}


@dataclass(frozen=True, slots=True)
class ContainerVerdict:
    """The trouble with one container, and the evidence for it."""

    name: str
    verdict: str  # looping, never_succeeded, failing
    reason: str
    evidence: Mapping[str, Json] = field(default_factory=dict)
    kind: str = "container"


def read_happenings(recording: Recording, wall_ns: int) -> list[ContainerHappening]:
    """Read a recording's container events, from the time that counts for loops."""
    return happenings_of(recording.events(Window(wall_ns - CONTAINER_WITHIN_NS, wall_ns + 1)))


def happenings_of(events: Iterable[Event]) -> list[ContainerHappening]:
    """Convert a recording's events into happenings of containers; times are wall times."""
    found = []
    for event in events:
        kind = _KINDS.get(event.kind)
        if kind is None:
            continue
        known, end = event.get(ContainerDetails), event.get(ContainerExitDetails)
        container = Container(
            runtime=known.runtime or "unknown",
            id=known.id or event.subject,
            name=known.name or event.subject,
            image=known.image,
            exit_status=end.exit_status,
            restarts=known.restarts,
            cgroup_parent=known.cgroup_parent,
            namespace=known.namespace,
            pod=known.pod,
        )
        ran_s = end.ran_s
        ran_ns = int(ran_s * 1e9) if ran_s is not None and 0 <= ran_s < 1e9 else None
        found.append(ContainerHappening(kind, event.time_ns, container, ran_ns))
    return found


def audit_containers(
    containers: Sequence[Container], happenings: Sequence[ContainerHappening], wall_ns: int
) -> list[ContainerVerdict]:
    """One verdict at most for each name: from what there is now, and what happened before."""
    happenings = _once(happenings)
    loops = [loop for loop in find_loops(happenings, wall_ns) if loop.lasts(wall_ns)]
    verdicts = {loop.name: _looping(loop, containers, wall_ns) for loop in loops}
    in_loops = {name for loop in loops for name in _names_of(loop, happenings)}
    by_name: dict[str, list[Container]] = defaultdict(list)
    for container in containers:
        by_name[container.subject].append(container)
    ends: dict[str, list[ContainerHappening]] = defaultdict(list)
    for happening in happenings:
        if happening.kind is HappeningKind.EXITED:
            ends[happening.container.subject].append(happening)
    for name in {*by_name, *ends} - in_loops:
        verdict = _judge(name, by_name[name], ends[name], wall_ns)
        if verdict is not None:
            verdicts[name] = verdict
    return sorted(verdicts.values(), key=lambda each: (_ORDER.index(each.verdict), each.name))


_ORDER = ("looping", "never_succeeded", "failing")


def _once(happenings: Sequence[ContainerHappening]) -> list[ContainerHappening]:
    """Each happening once, though a recording and the daemon may both tell of it."""
    seen: dict[tuple[HappeningKind, str], list[int]] = defaultdict(list)
    kept = []
    for happening in sorted(happenings, key=lambda each: each.wall_ns):
        times = seen[happening.kind, happening.container.id]
        if times and happening.wall_ns - times[-1] < _SAME_NS:
            continue
        times.append(happening.wall_ns)
        kept.append(happening)
    return kept


_SAME_NS = 50_000_000  # the same moment told twice, through two clocks


def _names_of(loop: ContainerLoop, happenings: Sequence[ContainerHappening]) -> set[str]:
    if not loop.by_image:
        return {loop.name}
    return {each.container.subject for each in happenings if each.container.image == loop.name}


def _looping(
    loop: ContainerLoop, containers: Sequence[Container], wall_ns: int
) -> ContainerVerdict:
    ages = [
        wall_ns - each.started_wall_ns
        for each in containers
        if each.running and each.started_wall_ns is not None and each.subject == loop.name
    ]
    youngest = max(0, min(ages)) if ages else None
    reason = f"{loop.describe()}, the last{_ago(wall_ns - (loop.last_ns or 0))}"
    if youngest is not None:
        reason += f"; the one that runs is {format_duration(youngest)} old"
    evidence: dict[str, Json] = {
        "runtime": loop.runtime,
        "starts": loop.times,
        "ids": loop.ids,
        "per_minute": None if loop.per_minute is None else round(loop.per_minute, 2),
        "exit_statuses": list(loop.exit_statuses),
        "failures": loop.failures,
        "longest_ran_s": _seconds(loop.longest_ran_ns),
        "youngest_s": _seconds(youngest),
        "cgroup_parent": loop.cgroup_parent,
        "last_start_ns": loop.last_ns,
    }
    return ContainerVerdict(loop.name, "looping", reason, evidence)


def _judge(
    name: str, containers: Sequence[Container], ends: Sequence[ContainerHappening], wall_ns: int
) -> ContainerVerdict | None:
    now = max(containers, key=lambda each: each.started_wall_ns or 0, default=None)
    if now is not None and _restarts_now(now, ends, wall_ns):
        evidence = _evidence(now) | {"restarts": now.restarts}
        code = "" if now.exit_status is None else f", exit code {now.exit_status}"
        reason = f"restarted {now.restarts} times, {now.state} now{code}"
        return ContainerVerdict(name, "looping", reason, evidence)
    codes = [each.container.exit_status for each in ends]
    failed = [code for code in codes if code is not None and code not in STOPPED]
    steady = any((each.ran_ns or 0) >= STEADY_NS for each in ends)
    if now is not None and (now.running or now.state in ("created", "restarting")):
        return None  # how it goes on remains to be seen
    if len(failed) >= 2 and len(failed) == len(codes) and not steady:
        evidence = (_evidence(now) if now else {}) | {"exit_statuses": sorted(set(failed))}
        gone = "; it is gone now" if now is None else ""
        reason = f"all {len(failed)} runs failed, the last with exit code {failed[-1]}{gone}"
        return ContainerVerdict(name, "never_succeeded", reason, evidence)
    last = now.exit_status if now is not None else None
    if now is not None and last is not None and last not in STOPPED:
        ago = "" if now.finished_wall_ns is None else _ago(wall_ns - now.finished_wall_ns)
        reason = f"ended with exit code {last}{ago} and does not run"
        return ContainerVerdict(name, "failing", reason, _evidence(now))
    return None


def _restarts_now(container: Container, ends: Sequence[ContainerHappening], wall_ns: int) -> bool:
    """Return whether the runtime's own counter shows a loop that was not observed."""
    if _backs_off(container, wall_ns):
        return True
    started = container.started_wall_ns
    recent = started is not None and wall_ns - started < CONTAINER_WITHIN_NS
    # The kubelet counts over the whole life of a pod: after a boot every old pod has restarts
    # and a young container.
    shown = container.pod is None or container.state is None or any(map(_failed_in_pod, ends))
    return decide_by_counter(
        container.restarts,
        waits=container.state == "restarting",
        just_started=recent and shown and container.state in ("running", None),
    )


def _backs_off(container: Container, wall_ns: int) -> bool:
    """Return whether the kubelet waits before it starts a failed container of a pod again."""
    ended = container.finished_wall_ns
    return (
        container.pod is not None
        and container.state == "exited"
        and container.exit_status not in (None, 0)
        and ended is not None
        and wall_ns - ended < STEADY_NS  # it waits five minutes at most
        and (container.restarts or 0) + 1 >= LEAST_TIMES
    )


def _failed_in_pod(end: ContainerHappening) -> bool:
    return end.container.exit_status not in (None, 0)


def _evidence(container: Container) -> dict[str, Json]:
    return {
        "runtime": container.runtime,
        "id": container.id,
        "image": container.image,
        "state": container.state,
        "exit_status": container.exit_status,
        "cgroup_parent": container.cgroup_parent,
        "finished_ns": container.finished_wall_ns,
    }


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / SECOND_NS, 3)


def _ago(nanoseconds: int) -> str:
    return f" {format_duration(max(0, nanoseconds))} ago"
