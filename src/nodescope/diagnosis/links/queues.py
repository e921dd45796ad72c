"""From a network device's queue to the core that serves it, by the best witness there is."""

from __future__ import annotations

from nodescope.diagnosis.case import Case
from nodescope.diagnosis.finding import Link, RuledOut, Symptom
from nodescope.diagnosis.story import Story
from nodescope.diagnosis.symptoms.incidents import NIC_KINDS, Incident
from nodescope.errors import UsageError
from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.quantities import parse_cpu_list
from nodescope.records.event_details import NicDetails
from nodescope.records.node_tables import NicQueueRow
from nodescope.records.view import Moment, View


def core_of_nic(
    case: Case, story: Story, incident: Incident, nic: Symptom, held: list[PeggedCore]
) -> PeggedCore | None:
    """Among the pegged cores the one that serves the queue, by the best witness there is."""
    queues = (each.get(NicDetails).queue for each in incident.of(*NIC_KINDS))
    queue = next((each for each in queues if each is not None), None)
    said = next((each.cpu for each in incident.of(*NIC_KINDS) if each.cpu is not None), None)
    rows = case.state(NicQueueRow, nic.time_ns)
    mine = [row for row in rows if row.nic == nic.subject or not nic.subject]
    serving = _serving(mine, queue)
    best = sorted(held, key=lambda each: -each.seconds)
    for each in best:
        if said == each.cpu or (queue is not None and each.cpu in serving):
            row = serving.get(each.cpu)
            irq = f" (interrupt {row.irq})" if row and row.irq is not None else ""
            place = f"queue {queue}" if queue is not None else "the queue"
            by = "says the driver" if said == each.cpu else "says the interrupt's affinity"
            story.links.append(
                Link(
                    "queue", nic.subject if queue is None else f"{nic.subject} queue {queue}",
                    f"{place} of {nic.subject} is served by core {each.cpu}{irq}, {by}", 4.0,
                    View("network", Moment(nic.time_ns)),
                    "packets of that queue served elsewhere meanwhile",
                )
            )  # fmt: skip
            return each
    serving_any = _serving(mine, None)
    for each in best:
        if each.cpu in serving_any:
            story.links.append(
                Link(
                    "queue", nic.subject,
                    f"core {each.cpu} serves queue {serving_any[each.cpu].queue} of "
                    f"{nic.subject}; which queue timed out was not said", 1.5,
                    View("network", Moment(nic.time_ns)),
                    "a time-out of a queue that another core serves",
                )
            )  # fmt: skip
            return each
    if mine and best:
        story.ruled_out.append(
            RuledOut(
                f"core {best[0].cpu}",
                f"core {best[0].cpu} was pegged for {best[0].seconds:.0f} s; ruled out because it "
                f"serves no queue of {nic.subject}",
            )
        )
        return None
    if best:
        story.lacks(
            "NIC queues", "the pegged core cannot be tied to the queue by its interrupt",
            "record with the observers `nics` and `interrupts`",
        )  # fmt: skip
        return best[0]
    return None


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
