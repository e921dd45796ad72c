"""How soon what was reported follows what it is put down to: the bounds on time.

A core explains a report if it was pegged before the report, and was still pegged then or
had been free for no longer than its kind of event declares (`records/event_kinds.py`). What is
reported of a core is seen while it is pegged: once it is free it serves its queues and
schedules again, and there is nothing left to see. The seconds allow for how often somebody
looks, and for one more: the time of a core is read once a second, so the end of a hold is
known to a second.
"""

from __future__ import annotations

from nodescope.diagnosis.finding import Symptom
from nodescope.quantities import SECOND_NS
from nodescope.recording.window import Window
from nodescope.records.event_details import NicDetails, NicTransmitDetails, StarvedCoreDetails
from nodescope.records.event_kinds import EVENT_KINDS

LAGS = {kind.name: kind.lag for kind in EVENT_KINDS.values() if kind.lag is not None}

COUNTED_WITHIN_S = 60.0  # counters that were read less often say too little of the time
JOB_AFTER_NIC_NS = 120 * SECOND_NS  # connections time out one after the other
JOB_EARLY_NS = 5 * SECOND_NS  # who notes a job may be quicker than who reads the kernel's log

# How long a driver waits for a queue, unless its own line says so: as long as the kernel's
# watchdog by default, or as the driver sets it. For the device's keep-alive ENA waits longer.
QUEUE_TIMEOUT_S = 5.0
QUEUE_TIMEOUTS_S = {"mlx5_core": 15.0}
KEEPALIVE_TIMEOUT_S = 6.0


def told_ns(report: Symptom) -> int:
    """When it was over: starvation is reported with its beginning and its length."""
    seconds = report.get(StarvedCoreDetails).seconds
    if seconds is not None:
        return report.time_ns + round(seconds * SECOND_NS)
    return report.time_ns


def since_free_s(held: Window, report: Symptom) -> float:
    """Seconds from the end of a hold to a report; negative while the core is pegged."""
    return (told_ns(report) - held.to_ns) / SECOND_NS


def explains(held: Window, report: Symptom) -> bool:
    """Return whether a core pegged then may explain that report."""
    if report.kind not in LAGS:
        return False
    begun = held.from_ns < told_ns(report)
    return begun and since_free_s(held, report) <= most_s(report)


def most_s(report: Symptom) -> float:
    """How long a core may have been free; what is only counted was at some time since a look."""
    within = report.get(NicDetails).within_s
    known = within is not None and 0 <= within <= COUNTED_WITHIN_S
    return LAGS[report.kind].seconds + (float(within) if within and known else 0.0)


def patience_s(report: Symptom) -> float:
    """How long the driver waits before it reports that."""
    told = report.get(NicTransmitDetails).threshold_ms
    if told is not None and told > 0:
        return told / 1000
    if report.kind == "nic_keepalive_lost":
        return KEEPALIVE_TIMEOUT_S
    return QUEUE_TIMEOUTS_S.get(report.get(NicDetails).driver or "", QUEUE_TIMEOUT_S)
