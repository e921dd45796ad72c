"""Happenings of units as events, from the bus or the journal, live or imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodescope.judgement.unit_loops import UnitLoops
from nodescope.records.event import Event
from nodescope.records.event_details import UnitLinesDetails, UnitRunDetails
from nodescope.sources.systemd.happenings import UnitHappening, parse_message
from nodescope.sources.systemd.journal import JournalMessage
from nodescope.sources.systemd.unit_texts import RunNumbers

# The fields of an entry by which systemd reports what happened to a unit.
UNIT_FIELDS = (
    "UNIT", "INVOCATION_ID", "_PID", "MESSAGE_ID", "UNIT_RESULT", "N_RESTARTS", "JOB_TYPE",
    "JOB_RESULT", "JOB_ID", "EXIT_CODE", "EXIT_STATUS",
)  # fmt: skip


def unit_event(happening: UnitHappening) -> Event:
    """Return the event of something that happened to a unit."""
    return Event(
        happening.time_us * 1000,
        f"unit_{happening.kind}",
        happening.unit,
        _MESSAGES[happening.kind](happening.details),
        details=happening.details,
    )


class UnitEvents:
    """Makes events of the entries of one journal, given in their order."""

    def __init__(self) -> None:
        self._loops = UnitLoops()
        self._runs = RunNumbers()

    def take(self, time_ns: int, fields: Mapping[str, str]) -> list[Event]:
        """Return the events of an entry that is `CHOSEN`; none if it reports nothing new."""
        time_us = time_ns // 1000
        happening = parse_message(JournalMessage(time_us, time_us, "", self._runs.add_to(fields)))
        if happening is None:
            return []
        return [unit_event(each) for each in self._loops.take([happening])]


def unit_lines_event(
    time_ns: int, unit: str, ends_us: Sequence[int], last: str, lines: Sequence[str]
) -> Event:
    """Return the event of a running unit that logs of ends; `ends_us` are the times of those."""
    details = UnitLinesDetails(
        times=len(ends_us),
        over_s=(ends_us[-1] - ends_us[0]) / 1e6,
        last_line=last,
        lines=tuple(lines),
    )
    message = f"logged {len(ends_us)} times that something ended with an error: {last}"
    return Event(time_ns, "unit_logs_ends", unit, message, details=details)


# -- in words ---------------------------------------------------------------------------


def _describe_end(run: UnitRunDetails) -> str:
    if run.exit_kind is None:
        return ""
    if run.exit_kind == "exited":
        return f"exit code {run.exit_status}"
    return f"{run.exit_kind} by signal {run.exit_status}"


def _describe_exit(run: UnitRunDetails) -> str:
    lasted = "" if run.ran_s is None else f" after {run.ran_s:g} s"
    return f"its main process ended{lasted}: {_describe_end(run) or 'nobody knows how'}"


def _describe_restart(run: UnitRunDetails) -> str:
    number = "" if run.restarts is None else f", number {run.restarts}"
    end = _describe_end(run)
    return f"started again{number}" + (f" after {end}" if end else "")


def _describe_loop(run: UnitRunDetails) -> str:
    number = "" if run.restarts is None else f", {run.restarts} restarts so far"
    end = _describe_end(run)
    return f"restarts over and over{number}" + (f", {end}" if end else "")


_MESSAGES: dict[str, Callable[[UnitRunDetails], str]] = {
    "started": lambda _: "started",
    "exit": _describe_exit,
    "failed": lambda run: f"failed: {run.result or 'for no reason told'}",
    "restart": _describe_restart,
    "loop": _describe_loop,
    "start_failed": lambda run: f"could not be started: {run.result or 'failed'}",
}
