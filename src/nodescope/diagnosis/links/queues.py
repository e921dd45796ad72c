"""From a network device's queue to the core that serves it, by the best witness there is."""

from __future__ import annotations

from dataclasses import dataclass

from nodescope.diagnosis.case import LOOKBACK_NS, Case
from nodescope.diagnosis.finding import Link, RuledOut, Symptom
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import NIC_KINDS, Incident
from nodescope.errors import UsageError
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.quantities import parse_cpu_list
from nodescope.recording.window import Window
from nodescope.records.event_details import NicDetails
from nodescope.records.node_tables import NicQueueRow
from nodescope.records.view import Moment, View


def core_of_nic(
    case: Case, story: Story, incident: Incident, nic: Symptom, held: list[PeggedCore]
) -> PeggedCore | None:
    """Among the pegged cores the one that serves the queue, by the best witness there is."""
    witness = _witness(case, incident, nic)
    best = sorted(held, key=lambda each: -each.seconds)
    for each in best:
        if witness.said == each.cpu or each.cpu in witness.serving:
            story.links.append(_tied(witness, each))
            return each
    if not best:
        return None
    if witness.serving or witness.said is not None:
        why = f"does not serve queue {witness.queue} of {nic.subject}"
        if not witness.serving:
            why = f"is not the one that the driver names, core {witness.said}"
        story.ruled_out.append(_rule_out(case, best[0], why, nic))
        return None
    serving_any = _serving(witness.rows, None)
    for each in best:
        if each.cpu in serving_any:
            story.links.append(_untold(witness, each, serving_any[each.cpu]))
            return each
    if witness.rows:
        story.ruled_out.append(_rule_out(case, best[0], f"serves no queue of {nic.subject}", nic))
        return None
    story.lacks(
        "NIC queues", "the pegged core cannot be tied to the queue by its interrupt",
        "record with the observers `nics` and `interrupts`",
    )  # fmt: skip
    return best[0]


@dataclass(frozen=True, slots=True)
class _Witness:
    """What is known of the queue of a report, and of the cores that serve it."""

    nic: Symptom
    queue: int | None  # that the driver names
    said: int | None  # core that the driver names
    rows: list[NicQueueRow]  # of the device
    serving: dict[int, NicQueueRow]  # cores that serve that queue


def _witness(case: Case, incident: Incident, nic: Symptom) -> _Witness:
    reports = incident.of(*NIC_KINDS)
    queues = (each.get(NicDetails).queue for each in reports)
    queue = next((each for each in queues if each is not None), None)
    said = next((each.cpu for each in reports if each.cpu is not None), None)
    rows = case.state(NicQueueRow, nic.time_ns)
    mine = [row for row in rows if row.nic == nic.subject or not nic.subject]
    return _Witness(nic, queue, said, mine, _serving(mine, queue) if queue is not None else {})


def _tied(witness: _Witness, core: PeggedCore) -> Link:
    nic, row = witness.nic, witness.serving.get(core.cpu)
    irq = f" (interrupt {row.irq})" if row and row.irq is not None else ""
    place = f"queue {witness.queue}" if witness.queue is not None else "the queue"
    by = "says the driver" if witness.said == core.cpu else "says the interrupt's affinity"
    return Link(
        "queue", nic.subject if witness.queue is None else f"{nic.subject} {place}",
        f"{place} of {nic.subject} is served by core {core.cpu}{irq}, {by}", 4.0,
        View("network", Moment(nic.time_ns)),
        "packets of that queue served elsewhere meanwhile",
    )  # fmt: skip


def _untold(witness: _Witness, core: PeggedCore, row: NicQueueRow) -> Link:
    """Tie a core that serves some queue of the device, where nothing tells which timed out."""
    unknown = "which queue timed out was not said"
    if witness.queue is not None:
        unknown = f"which core serves queue {witness.queue}, which timed out, was not recorded"
    return Link(
        "queue", witness.nic.subject,
        f"core {core.cpu} serves queue {row.queue} of {witness.nic.subject}; {unknown}", 1.5,
        View("network", Moment(witness.nic.time_ns)),
        "a time-out of a queue that another core serves",
    )  # fmt: skip


def _rule_out(case: Case, core: PeggedCore, why: str, nic: Symptom) -> RuledOut:
    known = Window(nic.time_ns - LOOKBACK_NS, nic.time_ns + 1)
    return RuledOut(
        f"core {core.cpu}",
        f"core {core.cpu} was pegged for {core.seconds:.0f} s; ruled out because it {why}",
        absent=case.absence("nic_queues", known),
    )


def find_tied_cores(case: Case, incident: Incident, nic: Symptom) -> dict[int, str]:
    """Return the cores that a report of a device is tied to, each with what ties them."""
    reports = incident.of(*NIC_KINDS)
    tied = {each.cpu: f"the driver names core {each.cpu}" for each in reports
            if each.cpu is not None}  # fmt: skip
    queues = [each.get(NicDetails).queue for each in reports]
    mine = [row for row in case.state(NicQueueRow, nic.time_ns)
            if row.nic == nic.subject or not nic.subject]  # fmt: skip
    for queue in {each for each in queues if each is not None}:
        for cpu in _serving(mine, queue):
            said = f"queue {queue} of {nic.subject} is served by core {cpu}, by its interrupt"
            tied.setdefault(cpu, said)
    return tied


def _serving(rows: list[NicQueueRow], queue: int | None) -> dict[int, NicQueueRow]:
    """Cores by which queues are served; of one queue, or of any."""
    found: dict[int, NicQueueRow] = {}
    for row in rows:
        if queue is not None and row.queue != queue:
            continue
        for cpu in _cpus(row.effective or row.affinity or ""):
            found.setdefault(cpu, row)
    return found


def _cpus(text: str) -> list[int]:
    try:
        return parse_cpu_list(text) if text else []
    except UsageError:
        return []
