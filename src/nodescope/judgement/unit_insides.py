"""The loop that hides inside a running unit.

systemd sees one old process and is content. What gives the loop away: children
of one command that end with errors again and again; or, where exit codes cannot
be seen, the same command always as a new process; or what the unit itself logs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from nodescope.judgement.loop_rules import LINES_WITHIN_NS, Loop, decide_child, is_often
from nodescope.judgement.verdict import AuditFinding
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.records.json import Json
from nodescope.sources.processes.exits import TaskExit
from nodescope.sources.systemd.unit_processes import Insides, Process, UnitInside

if TYPE_CHECKING:  # the recorder judges by this module, too, and need not hold the bus's client
    from nodescope.sources.systemd.journal import JournalMessage
    from nodescope.sources.systemd.survey import Survey

_LEAST_US = 3_000_000
_YOUNG_US = 60_000_000
_TOGETHER_US = 2_000_000
_STOPPED = (1, 2, 13, 15)  # HUP, INT, PIPE and TERM: somebody wanted that end
# Commands whose exit code is an answer, and commands that only wait.
_ANSWERS = frozenset(
    ("grep", "egrep", "fgrep", "rg", "pgrep", "pkill", "pidof", "ps", "test", "[", "diff", "cmp",
     "which", "expr", "getent", "mountpoint", "systemctl", "iptables", "ip6tables", "nft", "ipset",
     "nc", "ncat", "curl", "wget", "ping", "pg_isready", "mysqladmin", "redis-cli", "git", "jq",
     "dpkg-query", "rpm", "blkid", "lsof", "fuser", "smartctl", "findmnt", "modprobe")
)  # fmt: skip
_ANSWER_PREFIXES = ("check_", "iptables-", "xtables-")  # of monitoring: 1 and 2 by protocol
_WAITS = frozenset(("sleep", "timeout", "inotifywait", "flock", "tail", "journalctl"))
# Container runtimes and login servers: their children belong to other owners and are
# reported there.
FOR_OTHERS = frozenset(
    f"{name}.service"
    for name in ("docker", "containerd", "kubelet", "crio", "cri-docker", "k3s", "rke2-agent",
                 "rke2-server", "podman", "ssh", "sshd")
)  # fmt: skip
_ENDED = re.compile(
    r"(?:exited|terminated|died|crashed|ended)\b.{0,40}?\b(?:code|status)\b[ =:]*(-?\d+)",
    re.IGNORECASE,
)
_RETRIES = re.compile(r"failed to start, retrying|retrying in \S+|restarting in ", re.IGNORECASE)


def cgroups_to_watch(survey: Survey) -> dict[str, str]:
    """Units inside which a loop might hide, with their cgroups."""
    return {
        unit.name: unit.cgroup
        for unit in survey.units.values()
        if unit.active == "active"
        and unit.suffix == "service"
        and unit.cgroup is not None
        and unit.sub != "exited"
        and unit.name not in FOR_OTHERS
    }


def is_settled(insides: Insides) -> bool:
    """Return whether watching longer would show nothing new."""
    if insides.watched_us < _LEAST_US:
        return False
    return all(
        _failing(inside) is not None or _is_quiet(inside, insides.until_us)
        for inside in insides.of.values()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildLoop(Loop):
    """A child that fails, or is started anew, again and again inside a unit that runs on."""

    watched_ns: int  # for how long was looked
    command: str | None = None
    longest_ran_s: float | None = None
    end_counts: Mapping[str, int] = field(default_factory=dict)  # by how they ended
    main: str | None = None  # command of the unit's own process
    main_age_s: float | None = None
    why_no_exits: str | None = None  # where only new processes are seen, not how they end
    cgroup: str | None = None  # of the unit: another systemd may have one of that name
    reported_ns: int | None = None  # when a recorder reported it

    def describe(self) -> str:
        """Return the loop in words, of its unit."""
        watched = format_duration(self.watched_ns)
        if self.why_no_exits is not None:
            how = f"was a new process {self.times} times in {watched}"
        else:
            how = f"ended {self.times} times in {watched} ({', '.join(self.ends)})"
        return f"is active, but its child {self.name} {how}"

    @property
    def evidence(self) -> dict[str, Json]:
        """Return the evidence that the verdict shows and the recorder's event keeps."""
        watched_s = self.watched_ns / SECOND_NS
        if self.why_no_exits is not None:
            return {
                "command": self.command,
                "new_processes": self.times,
                "watched_s": watched_s,
                "exits": f"not seen: {self.why_no_exits}",
            }
        return {
            "child": self.name,
            "command": self.command,
            "failed_ends": self.times,
            "ends": dict(self.end_counts),
            "longest_ran_s": self.longest_ran_s,
            "watched_s": watched_s,
            "main": self.main,
            "main_age_s": self.main_age_s,
        }


@dataclass(frozen=True, slots=True)
class LoggedEnds:
    """Exits with an error of its children, as a unit logs them itself."""

    times: int
    last_line: str
    over_ns: int = LINES_WITHIN_NS

    def describe(self) -> str:
        """Return that in words, of its unit."""
        over = "the last hour"
        if self.over_ns != LINES_WITHIN_NS:
            over = format_duration(self.over_ns)
        return f"is active, but logged {self.times} times in {over}: {self.last_line}"


class HiddenFacts(NamedTuple):
    """Facts that may show a loop inside a running unit."""

    child: ChildLoop | None
    logged: LoggedEnds | None


def find_child_loop(inside: UnitInside, insides: Insides) -> ChildLoop | None:
    """Return the loop inside a unit, if one was seen."""
    watched_ns = insides.watched_us * 1000
    failing = _failing(inside)
    if failing is not None:
        ends = Counter(_describe_end(each) for each in failing)
        comm, main = failing[0].comm, inside.main
        return ChildLoop(
            kind="child", name=comm, inside=inside.unit, times=len(failing),
            failures=len(failing), period_ns=watched_ns // len(failing), ends=tuple(ends),
            watched_ns=watched_ns, command=_command_of(inside, comm),
            longest_ran_s=max(each.lasted_us for each in failing) / 1e6, end_counts=dict(ends),
            main=None if main is None else main.command,
            main_age_s=None if main is None else (insides.until_us - main.started_us) / 1e6,
        )  # fmt: skip
    again = None if insides.sees_exits else _started_again(inside)
    if again is None:
        return None
    return ChildLoop(
        kind="child", name=again[0].comm, inside=inside.unit, times=len(again),
        period_ns=watched_ns // len(again), watched_ns=watched_ns, command=again[0].command,
        why_no_exits=insides.why_no_exits,
    )  # fmt: skip


def find_logged_ends(lines: Sequence[JournalMessage], now_us: int) -> LoggedEnds | None:
    """Return what a unit logged of failed ends in the last hour, if it did so often enough."""
    said = _lines_about_ends(lines, now_us)
    return LoggedEnds(len(said), said[-1]) if is_often(len(said)) else None


def judge_hidden_loop(unit: str, facts: HiddenFacts) -> AuditFinding | None:
    """Return a finding, if something loops inside a unit that runs: by its child or its lines."""
    child, logged = facts
    if unit in FOR_OTHERS or (child is None and logged is None):
        return None
    evidence: dict[str, Json] = {} if child is None else child.evidence
    if logged is not None:
        evidence |= {"journal_lines": logged.times, "last_line": logged.last_line}
    if child is not None:
        return AuditFinding(unit, "hidden_loop", child.describe(), evidence)
    assert logged is not None
    return AuditFinding(unit, "hidden_loop", logged.describe(), evidence)


def _failing(inside: UnitInside) -> list[TaskExit] | None:
    """The ends of that child which ended with errors most often, if often enough."""
    by_comm: dict[str, list[TaskExit]] = defaultdict(list)
    for each in inside.exits:
        if is_failure(each):
            by_comm[each.comm].append(each)
    worst = max(by_comm.values(), key=len, default=[])
    return worst if decide_child([each.lasted_us * 1000 for each in worst]) else None


def is_failure(each: TaskExit) -> bool:
    """Return whether an exit is a failure."""
    stopped = each.signal in _STOPPED or each.exit_code - 128 in _STOPPED  # by a shell's count
    if not each.status or stopped or each.comm in _ANSWERS | _WAITS:
        return False
    if each.comm.startswith(_ANSWER_PREFIXES):
        return False
    # How a fork of the server's own ends is between the two; that it crashes is not.
    return each.execed or bool(each.signal)


def _started_again(inside: UnitInside) -> list[Process] | None:
    """Processes of one command and one parent that came one after the other."""
    families: dict[tuple[int, str], list[Process]] = defaultdict(list)
    for process in inside.processes.values():
        if process.comm not in _ANSWERS | _WAITS and process is not inside.main:
            families[process.parent, process.command].append(process)
    for family in sorted(families.values(), key=len, reverse=True):
        alive = [process for process in family if process.pid in inside.running]
        if is_often(len(family)) and len(alive) <= 1:
            return family
    return None


def _is_quiet(inside: UnitInside, now_us: int) -> bool:
    """Return whether no process is younger than those that came with the first."""
    main = inside.main
    if main is None:
        return True
    return not any(
        now_us - process.started_us < _YOUNG_US
        and process.started_us > main.started_us + _TOGETHER_US
        for process in inside.processes.values()
    ) and all(not each.status for each in inside.exits)


def _lines_about_ends(lines: Sequence[JournalMessage], now_us: int) -> list[str]:
    said = []
    for line in lines:
        text = line.fields.get("MESSAGE", "")[:1000]
        if (now_us - line.time_us) * 1000 > LINES_WITHIN_NS:
            continue
        if tells_of_failure(text) or _RETRIES.search(text):
            said.append(text[:200])
    return said


def tells_of_failure(line: str) -> bool:
    """Return whether a line says that something ended with an error."""
    ended = _ENDED.search(line)
    return ended is not None and int(ended[1]) != 0


def _describe_end(each: TaskExit) -> str:
    return f"signal {each.signal}" if each.signal else f"exit code {each.exit_code}"


def _command_of(inside: UnitInside, comm: str) -> str | None:
    main = inside.main
    for process in inside.processes.values():
        if process.comm == comm and process is not main:
            return process.command
    return None
