"""What every recording has beside samples: core times, heartbeats, gaps, events."""

from __future__ import annotations

from typing import Annotated

from nodescope.records.table import Row, count, counter, gauge, key, label, time


class CoreRow(
    Row,
    table="cores",
    help="Time each core spent in each state: `/proc/stat`, raw counters.",
    sorted_by=("cpu", "time_ns"),
    subject=("cpu",),
):
    """Row of `cores`."""

    cpu: Annotated[int, key("core", type="int16")]
    time_ns: Annotated[int, time("when `/proc/stat` was read", "ns")]
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
        "The recorder about itself, with the pair of clocks that places the rest. "
        "An import has the clocks, and what the capture tells of its rate and its losses."
    ),
    sorted_by=("time_ns",),
):
    """Row of `heartbeats`."""

    time_ns: Annotated[int, time("monotonic time of the reading", "ns")]
    wall_ns: Annotated[int, gauge("wall time at that moment", "ns since the epoch")]
    cpu_ns: Annotated[int | None, counter("CPU time the recorder has used", "ns")] = None
    rss_bytes: Annotated[int | None, gauge("resident memory of the recorder", "bytes")] = None
    written_bytes: Annotated[int | None, counter("bytes handed to the archive", "bytes")] = None
    samples: Annotated[int | None, counter("samples taken since the recorder started")] = None
    lost: Annotated[int | None, counter("records lost in the rings since it started")] = None
    folded: Annotated[
        int | None,
        counter("samples whose stack was folded since it started; null in earlier versions"),
    ] = None
    late_ns: Annotated[
        int | None, gauge("how late the latest reading of the sources was at worst", "ns")
    ] = None
    frequency_hz: Annotated[
        int | None, gauge("sampling rate per core in force", "Hz", type="int32")
    ] = None
    unresolved: Annotated[
        str | None,
        label(
            "why frames met since it started have no name: how many places by reason, as a "
            "JSON object (each place in a binary, in JIT code and in the kernel counts once, a"
            " caller in no mapping once per stack and segment); null if no sample was taken",
            type="string",
        ),
    ] = None


class Gap(
    Row,
    table="gaps",
    help="What was not seen, from when to when, and why.",
    sorted_by=("from_ns",),
):
    """Row of `gaps`: on the monotonic clock in a segment, on the wall clock when read."""

    from_ns: Annotated[int, time("start", "ns")]
    to_ns: Annotated[int, time("end", "ns")]
    source: Annotated[str, label("what is missing: `all`, or a table's name")]
    cpu: Annotated[int | None, key("on which core; null means all", type="int16")] = None
    lost: Annotated[int | None, count("how many records, where known")] = None
    reason: Annotated[str, label("why", type="string")]


class EventRow(
    Row,
    table="events",
    help="What happened, each at its time. The kinds are those of `records.events`.",
    sorted_by=("time_ns",),
):
    """Row of `events`."""

    time_ns: Annotated[int, time("when", "ns")]
    kind: Annotated[str, label("what kind of event")]
    subject: Annotated[str, label("what it happened to")]
    message: Annotated[str, label("one line for a person", type="string")]
    cpu: Annotated[int | None, key("the core it is about; null if none", type="int16")] = None
    details: Annotated[
        str | None,
        label("what else is known of it, as a JSON object; null if nothing", type="string"),
    ] = None
