"""One answer on a node's health now: ok, a problem, or not known; for monitors that ask often.

No verdict is made here: zombies, loops, pegged cores and network trouble are judged where every
other command has them judged. This decides only whether the node was in sight. What was seen to be
wrong counts; what was not seen neither raises a problem nor clears one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from nodescope.judgement.pegged_cores import PeggedCore, find_pegged_cores
from nodescope.judgement.recorded_audit import RecordedAudit, audit_recording
from nodescope.judgement.service_conditions import find_service_conditions
from nodescope.judgement.zombie_report import Report, assess_recorded
from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS, format_duration
from nodescope.recording.recording import Recording
from nodescope.recording.window import Window
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.json import Json

Status = Literal["ok", "warning", "critical", "unknown"]

_NEARLY_ALL = 0.9  # of the time that was asked for
MAX_AGE_NS = 2 * MINUTE_NS  # an open recording lags by at most a minute
MAX_LINE = 80  # bytes that node-problem-detector keeps
LOOP_KINDS = {
    "unit_loop": "UnitLoops",
    "unit_hidden_loop": "UnitLoopsInside",
    "container_loop": "ContainerLoops",
}
# The worst first: of several, it names the problem.
NETWORK_KINDS = {
    "nic_reset_failed": "NicResetFailed",
    "nic_reset": "NicReset",
    "core_starved": "CoreStarved",
    "nic_poll_starved": "NicPollStarved",
    "nic_tx_timeout": "NicTxTimeout",
}
_INSIDES = "what runs inside units"


@dataclass(frozen=True, slots=True)
class Health:
    """The answer of one check."""

    check: str
    status: Status
    reason: str  # one word that never changes, for alerts to match
    message: str
    at_ns: int | None = None  # wall time of the last reading; None: now
    facts: Mapping[str, Json] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """Return reason and message in at most `MAX_LINE` bytes, on one line."""
        plain = f"{self.reason}: {self.message}".encode("ascii", "replace").decode()
        plain = " ".join(plain.split())
        return plain if len(plain) <= MAX_LINE else f"{plain[: MAX_LINE - 3]}..."


def lost_sight(check: str, reason: str, message: str, at_ns: int | None = None) -> Health:
    """Return the answer where nothing could be seen."""
    return Health(check, "unknown", reason, message, at_ns)


def judge_recording(
    check: str, recording: Recording, now_ns: int, last_ns: int, max_age_ns: int = MAX_AGE_NS
) -> Health:
    """Return a check's answer at the end of a recording; unknown if that is too long ago."""
    if not recording.parts:
        return lost_sight(check, "NothingRecorded", "the recording is empty")
    at_ns = recording.extent.to_ns - 1
    age_ns = now_ns - at_ns
    if age_ns > max_age_ns:
        ago = format_duration(age_ns // SECOND_NS * SECOND_NS)
        return lost_sight(check, "RecorderStopped", f"last reading {ago} ago", at_ns)
    return CHECKS[check](recording, at_ns, last_ns)


def _in_sight(
    check: str, recording: Recording, at_ns: int, over_ns: int, tables: Sequence[str]
) -> Health | None:
    """Return the answer if one of the tables was not seen up to the end; None if all were."""
    window = Window(max(at_ns - over_ns, recording.extent.from_ns), at_ns + 1)
    for table in tables:
        covered = recording.coverage(table, window)
        if covered.damaged:
            return lost_sight(check, "RecordingDamaged", f"{table} cannot be read", at_ns)
        if not covered.spans or at_ns - covered.spans[-1].to_ns > MAX_AGE_NS:
            return lost_sight(check, "NotRecorded", f"{table}: not seen at the end", at_ns)
    return None


def _describe_time(recording: Recording, at_ns: int, last_ns: int, table: str) -> str:
    """Return the time that an all-clear is about, and how much of it was recorded if not all."""
    seen_ns = recording.coverage(table, Window(at_ns - last_ns, at_ns + 1)).observed_ns
    last = f"the last {format_duration(last_ns)}"
    if seen_ns >= last_ns * _NEARLY_ALL:
        return last
    return f"{format_duration(seen_ns // SECOND_NS * SECOND_NS)} recorded of {last}"


# -- the checks ----------------------------------------------------------------------


def judge_zombies(report: Report, at_ns: int | None = None) -> Health:
    """Return the answer of a report on zombies, recorded or live."""
    verdict, dying = report.verdict, report.reading.dying
    facts: dict[str, Json] = {
        "dying": dying,
        "warn_at": verdict.warn_at,
        "critical_at": verdict.critical_at,
        "because": list(verdict.reasons),
    }
    because = ", ".join(verdict.reasons)
    if verdict.level == "unknown" or dying is None:
        return Health("zombies", "unknown", "ZombiesNotCounted", because, at_ns, facts)
    if verdict.level == "healthy":
        message = f"{dying} dying memory cgroups, below {verdict.warn_at}"
        return Health("zombies", "ok", "ZombiesFew", message, at_ns, facts)
    critical = verdict.level == "critical"
    reason = "ZombiesCritical" if critical else "ZombiesMany"
    message = f"{because.replace(',', '')} memory cgroups, critical from {verdict.critical_at}"
    return Health("zombies", "critical" if critical else "warning", reason, message, at_ns, facts)


def _zombies(recording: Recording, at_ns: int, _last_ns: int) -> Health:
    report = assess_recorded(recording, at_ns)
    unseen = _in_sight("zombies", recording, at_ns, HOUR_NS, ("memory_cgroups",))
    if unseen is not None or not isinstance(report, Report):
        return unseen or lost_sight("zombies", "NotRecorded", "memory cgroups: not seen", at_ns)
    return judge_zombies(report, at_ns)


def describe_loops(kinds: Sequence[tuple[str, str]], at_ns: int | None = None) -> Health:
    """Return the answer of loops, given as kind of condition and name."""
    names = sorted({name for _, name in kinds})
    reason = next(word for kind, word in LOOP_KINDS.items() if any(k == kind for k, _ in kinds))
    facts: dict[str, Json] = {"loops": [{"kind": kind, "name": name} for kind, name in kinds]}
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    message = f"{', '.join(names[:2])}{more}"
    return Health("loops", "warning", reason, message, at_ns, facts)


def _loops(recording: Recording, at_ns: int, _last_ns: int) -> Health:
    found = [
        (each.kind, each.owner.name)
        for each in find_service_conditions(recording, at_ns)
        if each.kind in LOOP_KINDS
    ]
    if found:
        return describe_loops(found, at_ns)
    known = audit_recording(recording, at_ns)
    window = Window(max(at_ns - HOUR_NS, recording.extent.from_ns), at_ns + 1)
    there = [each for each in ("units", "containers") if recording.has(each, window)]
    unseen = _in_sight("loops", recording, at_ns, HOUR_NS, there or ("units",))
    if unseen is not None or not isinstance(known, RecordedAudit):
        return unseen or lost_sight("loops", "NotRecorded", "units: not seen", at_ns)
    if known.audit.unjudged:
        return lost_sight("loops", "NotRecorded", f"{known.audit.unjudged[0]}: not seen", at_ns)
    if "units" in there and _INSIDES in known.audit.not_observed:
        return lost_sight("loops", "NotRecorded", f"{_INSIDES}: not seen", at_ns)
    message = f"{len(known.units)} units, {len(known.containers)} containers, none loops"
    return Health("loops", "ok", "NoLoops", message, at_ns)


def judge_cores(found: Sequence[PeggedCore], over: str, at_ns: int | None = None) -> Health:
    """Return the answer of the pegged cores of a time, which `over` describes."""
    if not found:
        return Health("cores", "ok", "NoPeggedCore", f"none pegged in {over}", at_ns)
    worst = max(found, key=lambda each: each.to_ns - each.from_ns)
    cores: list[Json] = [
        {"cpu": each.cpu, "seconds": round(each.seconds, 1), "share": round(each.share, 3)}
        for each in found
    ]
    more = len({each.cpu for each in found}) - 1
    others = f", {more} more" if more else ""
    message = f"cpu {worst.cpu} {worst.describe()}{others}"
    return Health("cores", "warning", "CorePegged", message, at_ns, {"cores": cores})


def _cores(recording: Recording, at_ns: int, last_ns: int) -> Health:
    window = Window(at_ns - last_ns, at_ns + 1)
    found = find_pegged_cores(recording.core_readings(window), window)
    unseen = None if found else _in_sight("cores", recording, at_ns, last_ns, ("cores",))
    over = _describe_time(recording, at_ns, last_ns, "cores")
    return unseen or judge_cores(found, over, at_ns)


def _network(recording: Recording, at_ns: int, last_ns: int) -> Health:
    events = recording.events(Window(at_ns - last_ns, at_ns + 1), *NETWORK_KINDS)
    over = format_duration(last_ns)
    if not events:
        unseen = _in_sight("network", recording, at_ns, last_ns, ("softnet", "kernel_log"))
        seen = _describe_time(recording, at_ns, last_ns, "softnet")
        message = f"no reset or starvation in {seen}"
        return unseen or Health("network", "ok", "NetworkQuiet", message, at_ns)
    kind = next(each for each in NETWORK_KINDS if any(event.kind == each for event in events))
    mine = [event for event in events if event.kind == kind]
    subject = mine[-1].subject or recording.node_name
    facts: dict[str, Json] = {
        "events": [{"kind": each.kind, "subject": each.subject} for each in events[-20:]]
    }
    status: Status = "critical" if EVENT_KINDS[kind].serious else "warning"
    message = f"{subject}, {len(mine)} in the last {over}"
    return Health("network", status, NETWORK_KINDS[kind], message, at_ns, facts)


CHECKS: dict[str, Callable[[Recording, int, int], Health]] = {
    "zombies": _zombies,
    "loops": _loops,
    "cores": _cores,
    "network": _network,
}
LAST_NS = {
    "zombies": HOUR_NS,
    "loops": HOUR_NS,
    "cores": MINUTE_NS,
    "network": 10 * MINUTE_NS,
}
