"""The loop that hides inside a running unit.

systemd sees one old process and is content. What gives the loop away: children
of one command that end with errors again and again; or, where exit codes cannot
be seen, the same command always as a new process; or what the unit itself logs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nodescope.judgement.verdict import AuditFinding
from nodescope.quantities import format_duration
from nodescope.sources.processes.exits import TaskExit
from nodescope.sources.systemd.unit_processes import Insides, Process, UnitInside

if TYPE_CHECKING:  # the recorder judges by this module, too, and need not hold the bus's client
    from nodescope.sources.systemd.journal import JournalMessage
    from nodescope.sources.systemd.survey import Survey

_TIMES = 3
_LIVED_US = 2_000_000
_LEAST_US = 3_000_000
_YOUNG_US = 60_000_000
_TOGETHER_US = 2_000_000
_LINES_US = 3_600_000_000
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
# They run what others want: that loops there is told of containers, and a login that
# fails is no loop of the server's.
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
    """Whether watching on would tell nothing new."""
    if insides.watched_us < _LEAST_US:
        return False
    return all(
        _failing(inside) is not None or _is_quiet(inside, insides.until_us)
        for inside in insides.of.values()
    )


def audit_inside(
    inside: UnitInside | None,
    insides: Insides,
    lines: Sequence[JournalMessage],
    now_us: int,
    unit: str,
) -> AuditFinding | None:
    """A finding, if something loops inside this unit."""
    if unit in FOR_OTHERS:
        return None
    said = _lines_about_ends(lines, now_us)
    evidence: dict[str, Any] = {}
    if len(said) >= _TIMES:
        evidence |= {"journal_lines": len(said), "last_line": said[-1]}
    found = None if inside is None else _from_processes(inside, insides)
    if found is not None:
        reason, more = found
        return AuditFinding(unit, "hidden_loop", reason, more | evidence)
    if evidence:
        reason = f"is active, but logged {len(said)} times in the last hour: {said[-1]}"
        return AuditFinding(unit, "hidden_loop", reason, evidence)
    return None


def _from_processes(inside: UnitInside, insides: Insides) -> tuple[str, dict[str, Any]] | None:
    failing = _failing(inside)
    main = inside.main
    watched = format_duration(insides.watched_us * 1000)
    if failing is not None:
        ends = Counter(_describe_end(each) for each in failing)
        comm = failing[0].comm
        evidence = {
            "child": comm,
            "command": _command_of(inside, comm),
            "failed_ends": len(failing),
            "ends": dict(ends),
            "longest_ran_s": max(each.lasted_us for each in failing) / 1e6,
            "watched_s": insides.watched_us / 1e6,
            "main": None if main is None else main.command,
            "main_age_s": None if main is None else (insides.until_us - main.started_us) / 1e6,
        }
        shown = ", ".join(ends)
        return (
            f"is active, but its child {comm} ended {len(failing)} times in {watched} ({shown})",
            evidence,
        )
    if insides.sees_exits:
        return None
    again = _started_again(inside)
    if again is None:
        return None
    evidence = {
        "command": again[0].command,
        "new_processes": len(again),
        "watched_s": insides.watched_us / 1e6,
        "exits": f"not seen: {insides.why_no_exits}",
    }
    reason = (
        f"is active, but its child {again[0].comm} was a new process {len(again)} times "
        f"in {watched}"
    )
    return reason, evidence


def _failing(inside: UnitInside) -> list[TaskExit] | None:
    """The ends of that child which ended with errors most often, if often enough."""
    by_comm: dict[str, list[TaskExit]] = defaultdict(list)
    for each in inside.exits:
        if is_failure(each):
            by_comm[each.comm].append(each)
    worst = max(by_comm.values(), key=len, default=[])
    # a child that lived for a while was no passing helper: of such ends, two are enough
    lived = len(worst) > 1 and all(each.lasted_us >= _LIVED_US for each in worst)
    return worst if lived or len(worst) >= _TIMES else None


def is_failure(each: TaskExit) -> bool:
    """Whether an end tells of something wrong."""
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
        if len(family) >= _TIMES and len(alive) <= 1:
            return family
    return None


def _is_quiet(inside: UnitInside, now_us: int) -> bool:
    """Whether nothing in it is young but what came with its first process."""
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
        if now_us - line.time_us > _LINES_US:
            continue
        if tells_of_failure(text) or _RETRIES.search(text):
            said.append(text[:200])
    return said


def tells_of_failure(line: str) -> bool:
    """Whether a line says that something ended with an error."""
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
