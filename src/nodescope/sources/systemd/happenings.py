"""Happenings of a unit, in the same words whether the journal or the bus reports them.

A happening has a key: the same thing told by two witnesses has the same one.
Most keys are by `INVOCATION_ID`, which systemd gives to each run of a unit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from nodescope.records.event_details import UnitRunDetails
from nodescope.sources.systemd.journal import JournalMessage

STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
STARTED = "39f53479d3a045ac8e11786248231fbf"
EXIT = "98e322203f7a4ed290d09fe03c09fe15"
SUCCESS = "7ad2d189f7e94e70a38c781354912448"
FAILED = "d9b373ed55a64feb8242e02dbe79a49c"
RESTART = "5eb03494b6584870a536b337290809b3"
START_FAILED = "be02cf6855d2428ba40df7e9d022f03d"
STOPPED = "9d1aaa27d60140bd96365438aad20286"

_IDS = frozenset((STARTING, STARTED, EXIT, SUCCESS, FAILED, RESTART, START_FAILED, STOPPED))
# Entries of the journal that tell of units. What systemd says of a circle of them has no
# message id, but the function that says it.
CHOSEN = {"MESSAGE_ID": _IDS, "CODE_FUNC": frozenset(("transaction_verify_order_one",))}
CYCLE = "ordering-cycle"  # why a job was not run, in the words of its other results
_DELETED = re.compile(r"Job (\S+)/(?:re)?start deleted to break ordering cycle")
ORDER = ("started", "exit", "failed", "start_failed", "stopped", "restart", "loop")


@dataclass(frozen=True, slots=True)
class UnitHappening:
    """One thing that happened; `kind` is one of `ORDER`."""

    kind: str
    unit: str
    time_us: int
    key: tuple[str, ...]
    details: UnitRunDetails = field(default_factory=UnitRunDetails)
    exact: bool = True  # whether the time is that of the thing, not of our hearing of it


def parse_message(message: JournalMessage) -> UnitHappening | None:
    """Return the happening that a journal entry of systemd reports; None for other entries."""
    fields = message.fields
    unit, invocation = fields.get("UNIT", ""), fields.get("INVOCATION_ID", "")
    if fields.get("_PID", "1") != "1":
        return None  # anybody may log such lines: only systemd's own count
    if deleted := _DELETED.search(fields.get("MESSAGE", "")):
        # it names every unit of the circle as UNIT, and the one left out in words
        return start_failed(deleted[1], message.time_us, f"at {message.time_us}", CYCLE)
    if not unit:
        return None
    message_id = fields.get("MESSAGE_ID", "")
    if message_id in (STARTING, STARTED):
        if not invocation or not unit.endswith(".service"):
            return None  # `was skipped because of an unmet condition check`, or a target reached
        return started(unit, message.time_us, invocation)
    if message_id == EXIT:
        return _exit(unit, message, invocation)
    if message_id == SUCCESS and unit.endswith(".service"):
        return exited(unit, message.time_us, invocation, "exited", 0)
    if message_id == FAILED:
        return failed(unit, message.time_us, invocation, fields.get("UNIT_RESULT") or "failed")
    if message_id == RESTART:
        count = fields.get("N_RESTARTS", "")
        return restarted(unit, message.time_us, invocation, int(count) if count.isdigit() else None)
    if message_id == START_FAILED and fields.get("JOB_TYPE", "start") in ("start", "restart"):
        result = fields.get("JOB_RESULT") or "failed"
        return start_failed(unit, message.time_us, fields.get("JOB_ID", ""), result)
    if message_id == STOPPED and fields.get("JOB_TYPE") == "stop":
        return UnitHappening("stopped", unit, message.time_us, ("stopped", unit, invocation))
    return None


def _exit(unit: str, message: JournalMessage, invocation: str) -> UnitHappening | None:
    """The end of a main process; `ExecStartPre=` and the like are no runs of a unit."""
    fields = message.fields
    if "ontrol process" in fields.get("MESSAGE", "") or not unit.endswith(".service"):
        return None
    status = fields.get("EXIT_STATUS", "")
    return exited(
        unit,
        message.time_us,
        invocation,
        fields.get("EXIT_CODE") or None,
        int(status) if status.isdigit() else None,
    )


def started(unit: str, time_us: int, invocation: str) -> UnitHappening:
    """Return that a run began."""
    details = UnitRunDetails(invocation=invocation)
    return UnitHappening("started", unit, time_us, ("started", unit, invocation), details)


def exited(
    unit: str, time_us: int, invocation: str, kind: str | None, status: int | None
) -> UnitHappening:
    """Return that the main process of a run ended, and how."""
    details = UnitRunDetails(invocation=invocation, exit_kind=kind, exit_status=status)
    return UnitHappening("exit", unit, time_us, ("exit", unit, invocation), details)


def failed(unit: str, time_us: int, invocation: str, result: str) -> UnitHappening:
    """Return that a run failed."""
    details = UnitRunDetails(invocation=invocation, result=result)
    return UnitHappening("failed", unit, time_us, ("failed", unit, invocation or result), details)


def restarted(
    unit: str,
    time_us: int,
    invocation: str,
    count: int | None,
    end: tuple[str | None, int | None] = (None, None),
    *,
    exact: bool = True,
) -> UnitHappening:
    """Return that a unit is started again after the run `invocation`, which had this end."""
    kind, status = end if end[0] is not None else (None, None)
    details = UnitRunDetails(
        invocation=invocation, restarts=count, exit_kind=kind, exit_status=status
    )
    return UnitHappening("restart", unit, time_us, ("restart", unit, invocation), details, exact)


def start_failed(
    unit: str, time_us: int, job: str, result: str, *, exact: bool = True
) -> UnitHappening:
    """Return that a job to start a unit failed."""
    key, details = ("start_failed", unit, job), UnitRunDetails(result=result)
    return UnitHappening("start_failed", unit, time_us, key, details, exact)
