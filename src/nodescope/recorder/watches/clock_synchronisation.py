"""Decides when a clock that is not synchronised is worth an event.

Many virtual machines have no time service and are never synchronised: that is no event. It is
one if the clock was synchronised before, or if a time service runs and does not manage it.
"""

from __future__ import annotations

from nodescope.quantities import SECOND_NS
from nodescope.sources.limits.clock_state import ClockState
from nodescope.sources.places import Places

_PATIENCE_NS = 600 * SECOND_NS  # a service needs minutes after it starts
_SERVICES = {  # folders and files that a time service makes when it starts
    "chronyd": ("/run/chrony", "/var/run/chrony"),
    "systemd-timesyncd": ("/run/systemd/timesync",),
    "ntpd": ("/run/ntpd.pid", "/var/run/ntpd.pid", "/run/ntpd.sock"),
}


class SynchronisationWatch:
    """Follows the state of the clock."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._was_synchronised = False
        self._since_ns: int | None = None
        self._reported = False

    def look(self, now_ns: int, state: ClockState) -> str | None:
        """Return why the clock is worth an event now; None if it is not."""
        if state.synchronised:
            self._was_synchronised, self._reported, self._since_ns = True, False, None
            return None
        if self._since_ns is None:
            self._since_ns = now_ns
        if self._reported:
            return None
        if self._was_synchronised:
            self._reported = True
            return "the kernel considers its clock unsynchronised; it was synchronised before"
        if now_ns - self._since_ns < _PATIENCE_NS:
            return None
        self._reported = True
        service = self._find_service()
        return None if service is None else f"{service} runs, and the clock is not synchronised"

    def _find_service(self) -> str | None:
        for service, paths in _SERVICES.items():
            if any(self._places.inside(path).exists() for path in paths):
                return service
        return None
