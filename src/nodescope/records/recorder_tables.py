"""The tables that every recording has beside samples: core times, heartbeats, gaps, events."""

from __future__ import annotations

from typing import Annotated

from nodescope.records.table import Row, count, counter, gauge, key, label, time


class CoreRow(
    Row,
    table="cores",
    help="Time of each core in each state: `/proc/stat`, raw counters.",
    sorted_by=("cpu", "time_ns"),
    subject=("cpu",),
):
    """Row of `cores`."""

    cpu: Annotated[int, key("core", type="int16")]
    time_ns: Annotated[int, time("time at which `/proc/stat` was read", "ns")]
    user: Annotated[int, counter("in user mode", "ticks")]
    nice: Annotated[int, counter("in user mode, niced", "ticks")]
    system: Annotated[int, counter("in the kernel", "ticks")]
    idle: Annotated[int, counter("idle", "ticks")]
    iowait: Annotated[int, counter("idle with I/O outstanding", "ticks")]
    irq: Annotated[int, counter("serving interrupts", "ticks")]
    softirq: Annotated[int, counter("serving soft interrupts", "ticks")]
    steal: Annotated[int, counter("taken by the hypervisor", "ticks")]
    guest: Annotated[int, counter("running a guest (also in user)", "ticks")]
    guest_nice: Annotated[int, counter("running a niced guest (also in nice)", "ticks")]


CORE_STATES = CoreRow.names()[2:]  # in the order of `/proc/stat`


class HeartbeatRow(
    Row,
    table="heartbeats",
    help=(
        "The recorder's own state, and the clock pairs that turn monotonic times into wall times. "
        "An import has the clocks, and the rate and losses that the capture reports."
    ),
    sorted_by=("time_ns",),
):
    """Row of `heartbeats`."""

    time_ns: Annotated[int, time("monotonic time of the reading", "ns")]
    wall_ns: Annotated[int, gauge("wall time of the reading", "ns since the epoch")]
    cpu_ns: Annotated[int | None, counter("CPU time of the recorder", "ns")] = None
    rss_bytes: Annotated[int | None, gauge("resident memory of the recorder", "bytes")] = None
    written_bytes: Annotated[int | None, counter("bytes written to the archive", "bytes")] = None
    samples: Annotated[int | None, counter("samples taken since the recorder started")] = None
    lost: Annotated[int | None, counter("records lost in the rings since the recorder started")] = (
        None
    )
    folded: Annotated[
        int | None,
        counter("samples with a folded stack since the recorder started; null in earlier versions"),
    ] = None
    late_ns: Annotated[
        int | None, gauge("largest delay of a reading since the previous heartbeat", "ns")
    ] = None
    frequency_hz: Annotated[
        int | None, gauge("current sampling rate per core", "Hz", type="int32")
    ] = None
    unresolved: Annotated[
        str | None,
        label(
            "number of frames without a name by reason, since the recorder started, as a JSON "
            "object (each address in a binary, in JIT code and in the kernel counts once, a "
            "caller in no mapping once per stack and segment); null if no sample was taken",
            type="string",
        ),
    ] = None


class Gap(
    Row,
    table="gaps",
    help="Times in which something was not recorded, with the reason.",
    sorted_by=("from_ns",),
):
    """Row of `gaps`: on the monotonic clock in a segment, on the wall clock when read."""

    from_ns: Annotated[int, time("start", "ns")]
    to_ns: Annotated[int, time("end", "ns")]
    source: Annotated[str, label("missing source: `all`, or the name of a table")]
    cpu: Annotated[int | None, key("core; null means all", type="int16")] = None
    lost: Annotated[int | None, count("number of lost records, if known")] = None
    reason: Annotated[str, label("reason", type="string")]


class EventRow(
    Row,
    table="events",
    help="Events, each at its time. Kinds: [events.md](events.md).",
    sorted_by=("time_ns",),
):
    """Row of `events`."""

    time_ns: Annotated[int, time("time of the event", "ns")]
    kind: Annotated[str, label("kind of event")]
    subject: Annotated[str, label("subject: a NIC, a core, a unit, a job, …")]
    message: Annotated[str, label("one line for a person", type="string")]
    cpu: Annotated[int | None, key("core that the event is about; null if none", type="int16")] = (
        None
    )
    details: Annotated[
        str | None,
        label("details as a JSON object; null if none", type="string"),
    ] = None
