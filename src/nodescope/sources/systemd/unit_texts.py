"""What systemd writes of its units where only the words of an entry are left: text logs.

systemd 219 to 257. `systemctl`'s descriptions alone ("Started My Service.") name no unit and are
passed over. A log has no ids of runs; `RunNumbers` counts them instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nodescope.sources.systemd import happenings

_UNIT = r"(?P<UNIT>[^\s:]{1,250}\.(?:service|mount|socket|scope|swap|slice))"
_NAMED = rf"{_UNIT}(?: - .*)?"
_CODE = r"code=(?P<EXIT_CODE>\w+), status=(?P<EXIT_STATUS>\d{1,3})"
_WAITED = r"(?:hold-?off time over|RestartSec=\S{1,40} expired)"
# An entry's message id and its fields, by the words.
_WORDS: tuple[tuple[re.Pattern[str], Mapping[str, str]], ...] = tuple(
    (re.compile(rf"(?:{pattern})\Z", re.ASCII | re.DOTALL), {"MESSAGE_ID": identity, **more})
    for pattern, identity, more in (
        (
            rf"{_UNIT}: [Mm]ain process exited, {_CODE}(?:/.*)?",
            happenings.EXIT,
            {},
        ),
        (rf"{_UNIT}: (?:Succeeded|Deactivated successfully)\.", happenings.SUCCESS, {}),
        (rf"{_UNIT}: Failed with result '(?P<UNIT_RESULT>[\w-]+)'\.", happenings.FAILED, {}),
        (rf"Unit {_UNIT} entered failed state\.", happenings.FAILED, {}),  # up to 234
        (
            rf"{_UNIT}: Scheduled restart job, restart counter is at (?P<N_RESTARTS>\d{{1,9}})\.",
            happenings.RESTART,
            {},
        ),
        (
            rf"{_UNIT}:? (?:Service )?{_WAITED}, scheduling restart\.",
            happenings.RESTART,
            {},
        ),
        (rf"Starting {_NAMED}\.\.\.", happenings.STARTING, {}),
        (rf"Started {_NAMED}\.", happenings.STARTED, {}),
        (rf"Stopping {_NAMED}\.\.\.", happenings.STOPPED, {"JOB_TYPE": "stop"}),
        (rf"Failed to start {_NAMED}\.", happenings.START_FAILED, {"JOB_RESULT": "failed"}),
        (
            rf"Dependency failed for {_NAMED}\.",
            happenings.START_FAILED,
            {"JOB_RESULT": "dependency"},
        ),
    )
)
_ENDS = frozenset((happenings.EXIT, happenings.SUCCESS, happenings.FAILED))
_STARTS = frozenset((happenings.STARTING, happenings.STARTED))


def parse_unit_text(text: str) -> dict[str, str]:
    """Return the fields of the journal entry that a line of systemd stands for; none for others."""
    for pattern, fields in _WORDS:
        if found := pattern.match(text):
            told = {name: value for name, value in found.groupdict().items() if value is not None}
            return {**fields, **told, "MESSAGE": text}
    return {}


class RunNumbers:
    """Numbers the runs of each unit, where entries have no `INVOCATION_ID`: text, systemd < 232."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[int, frozenset[str]]] = {}  # number, and what was told of it

    def add_to(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Return the fields of an entry with the number of the run that it is about."""
        unit, told = fields.get("UNIT", ""), fields.get("MESSAGE_ID", "")
        if not unit or fields.get("INVOCATION_ID"):
            return dict(fields)
        number, known = self._runs.get(unit, (1, frozenset[str]()))
        # A start after an end, or the second end of one kind, is of the next run.
        begins = told in _STARTS and bool(known & (_ENDS | {happenings.RESTART}))
        if begins or (told in _ENDS and (told in known or happenings.RESTART in known)):
            number, known = number + 1, frozenset()
        self._runs[unit] = number, known | {told}
        return {**fields, "INVOCATION_ID": f"run {number}"}
