"""Find who turned a unit on again: by systemd's own times, the journal and package logs.

Evidence in this order: a unit that triggers it or pulled it in; a line of the journal about
it, of anybody but systemd and itself (sudo, Ansible, Puppet, Chef and others log what they
do); a client that systemd names; a package that was set up then; units that started just
before. A recording adds units that started and ended meanwhile, and programs that it sampled
then. Without any evidence nobody is named.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodescope.errors import ArchiveError, NodescopeError, SourceError
from nodescope.quantities import SECOND_NS
from nodescope.remedy.node_access import NodeAccess
from nodescope.remedy.plan import PlanStep
from nodescope.remedy.unit_links import find_enabling_links
from nodescope.sources.systemd.journal import Journal, JournalMessage
from nodescope.wall_time import format_moment, match_iso

UNKNOWN = "not known"
_MOST_LINES = 300  # of each program
_BEFORE_NS = 60 * SECOND_NS
_AFTER_NS = 2 * SECOND_NS
_TAIL_BYTES = 64 << 10
_CLIENT = re.compile(r"requested from client PID (\d+) \('([^']*)'\)(?: \(unit ([^)]+)\))?")
_DPKG = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) (?:configure|trigproc) (\S+)", re.MULTILINE)
# Programs that change nodes: configuration managers, and what installs packages.
_CHANGES_NODES = re.compile(
    r"puppet|chef-client|cinc-client|ansible|salt-|cf-agent|dpkg|apt(-get)?$|deb-systemd|rpm$|dnf"
    r"|yum|zypper|snapd|cloud-init|packagekitd|unattended-upgr|systemctl$"
)
_PULLING = ("TriggeredBy", "RequiredBy", "RequisiteOf", "BoundBy", "WantedBy", "UpheldBy")


@dataclass(frozen=True, slots=True)
class LoggedLine:
    """One line of the journal, by whom."""

    wall_ns: int
    by: str  # the program
    unit: str  # that it belongs to; empty: none
    text: str


@dataclass(frozen=True, slots=True)
class Surmise:
    """Everything that may show who turned a unit on; `on_ns` is when it was found to be on."""

    unit: str
    since_ns: int
    on_ns: int
    pulled_in_by: Sequence[str] = ()
    lines: Sequence[LoggedLine] = ()
    packages: Sequence[str] = ()
    programs: Sequence[str] = ()  # that change nodes, sampled just then
    started_before: Sequence[str] = ()
    owner: str = ""  # of the link that enables it again


def find_culprit(
    step: PlanStep, since_ns: int, node: NodeAccess, archive: str | None = None
) -> str:
    """Return who turned a step's unit on again since a wall time, in words."""
    name = step.target.name
    if step.target.kind != "unit" or not name:
        return UNKNOWN
    try:
        return name_culprit(_read_surmise(name, since_ns, node, archive))
    except NodescopeError:
        return UNKNOWN


def name_culprit(facts: Surmise) -> str:
    """Return who did it, with the evidence; `not known` without any."""
    if facts.pulled_in_by:
        return f"{', '.join(facts.pulled_in_by)}, which starts it"
    near = [each for each in facts.lines if facts.since_ns <= each.wall_ns <= _end(facts)]
    about = [each for each in near if _mentions(each.text, facts.unit) and not _own(each, facts)]
    if about:
        last = about[-1]
        return f"{_called(last)} at {format_moment(last.wall_ns)}: {last.text.strip()[:200]!r}"
    clients = [
        found for each in near if (found := _CLIENT.search(each.text)) and _is_near(each, facts)
    ]
    if clients:
        pid, comm, unit = clients[-1].groups()
        return f"{comm} (pid {pid}{f', of {unit}' if unit else ''}), which asked systemd then"
    if facts.packages:
        return f"the set-up of package {', '.join(facts.packages)} (dpkg's log)"
    if facts.programs:
        return f"perhaps {', '.join(facts.programs)}, recorded as running just then"
    if facts.started_before:
        units = ", ".join(facts.started_before)
        return f"{UNKNOWN}; started just before it: {units}"
    if facts.owner:
        return f"user {facts.owner}, who owns the new link; by which program is {UNKNOWN}"
    return UNKNOWN


def _end(facts: Surmise) -> int:
    return facts.on_ns + _AFTER_NS


def _is_near(line: LoggedLine, facts: Surmise) -> bool:
    return line.wall_ns >= facts.on_ns - _BEFORE_NS


def _own(line: LoggedLine, facts: Surmise) -> bool:
    return line.by in ("systemd", "nodescope") or line.unit == facts.unit


def _mentions(text: str, unit: str) -> bool:
    """Decide whether a text has the unit's name, with or without its suffix, as a word."""
    stem = unit.removesuffix(".service")
    return re.search(rf"(?<![\w@-]){re.escape(stem)}(?![\w@-])", text) is not None


def _called(line: LoggedLine) -> str:
    return f"{line.by} ({line.unit})" if line.unit else line.by


# -- reading ---------------------------------------------------------------------------


def _read_surmise(unit: str, since_ns: int, node: NodeAccess, archive: str | None) -> Surmise:
    read = node.manager.read_property
    started_ns = int(read(unit, "Unit", "InactiveExitTimestamp")) * 1000
    owner = ""
    if started_ns <= since_ns:  # it did not start: it was enabled
        started_ns, owner = _newest_link(unit, node)
    on_ns = started_ns if started_ns > since_ns else time.time_ns()
    recorded, programs = _read_recorded(archive, unit, max(since_ns, on_ns - _BEFORE_NS), on_ns)
    started = _find_started(unit, max(since_ns, on_ns - _BEFORE_NS), on_ns, node)
    return Surmise(
        unit,
        since_ns,
        on_ns,
        tuple(_find_pulling(unit, since_ns, on_ns, node)),
        _read_lines(node),
        tuple(_find_packages(node.unit_root, max(since_ns, on_ns - _BEFORE_NS), on_ns)),
        programs,
        tuple(dict.fromkeys((*started, *recorded))),
        owner,
    )


def _newest_link(unit: str, node: NodeAccess) -> tuple[int, str]:
    """Return when the newest link that enables a unit was made, and by which user."""
    newest = (0, "")
    for link in find_enabling_links(node.unit_root, unit):
        try:
            found = os.lstat(node.unit_root / link.lstrip("/"))
        except OSError:
            continue  # gone again
        newest = max(newest, (found.st_mtime_ns, str(found.st_uid)))
    return newest


def _find_pulling(unit: str, since_ns: int, on_ns: int, node: NodeAccess) -> Iterable[str]:
    """Yield the units that start it, and that were started or triggered since."""
    for key in _PULLING:
        for each in node.manager.read_property(unit, "Unit", key):
            began_ns = int(node.manager.read_property(each, "Unit", "InactiveExitTimestamp")) * 1000
            active = node.manager.read_property(each, "Unit", "ActiveState") == "active"
            if active and (key == "TriggeredBy" or since_ns < began_ns <= on_ns):
                yield str(each)


def _read_lines(node: NodeAccess) -> tuple[LoggedLine, ...]:
    try:
        journal = Journal.open(node.places, _MOST_LINES)
    except SourceError:
        return ()
    try:
        return tuple(map(_line, journal.take_new({"_COMM": lambda _comm: True})))
    finally:
        journal.close()


def _line(message: JournalMessage) -> LoggedLine:
    fields = message.fields
    by = fields.get("SYSLOG_IDENTIFIER") or fields.get("_COMM", "")
    unit = fields.get("_SYSTEMD_UNIT", "")
    return LoggedLine(message.wall_us * 1000, by, unit, fields.get("MESSAGE", ""))


def _read_recorded(
    archive: str | None, unit: str, from_ns: int, to_ns: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the units that a recording saw start in a time, and the programs it sampled."""
    if archive is None:
        return (), ()
    from nodescope.recording.recording import Recording
    from nodescope.recording.window import Window

    window = Window(from_ns, to_ns + _AFTER_NS)
    try:
        recording = Recording.open(archive)
        started = recording.events(window, "unit_started")
        comms = {
            part.comms[code]
            for part in recording.samples(window)
            for code in set(part.profile_comm[part.profile].tolist())
        }
    except ArchiveError:
        return (), ()
    units = dict.fromkeys(each.subject for each in started if each.subject != unit)
    return tuple(units), tuple(sorted(each for each in comms if _CHANGES_NODES.match(each)))


def _find_packages(root: Path, from_ns: int, to_ns: int) -> Iterable[str]:
    """Yield the packages that dpkg set up in a time; its log has local times."""
    try:
        with open(root / "var/log/dpkg.log", "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return
    for when, package in dict.fromkeys(_DPKG.findall(text)):
        found = match_iso(when)
        if found is not None and from_ns - SECOND_NS <= found[0] <= to_ns + SECOND_NS:
            yield package


def _find_started(unit: str, from_ns: int, to_ns: int, node: NodeAccess) -> Iterable[str]:
    """Yield services that started in the time before."""
    for each in node.manager.list_units():
        if each.name == unit or not each.name.endswith(".service"):
            continue
        began_us = node.manager.read_property(each.name, "Unit", "InactiveExitTimestamp")
        if from_ns < int(began_us) * 1000 <= to_ns:
            yield each.name
