"""One run of the recorder, from options to a sealed archive."""

from __future__ import annotations

from collections.abc import Callable

from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import UsageError
from nodescope.quantities import format_cpu_list, format_duration
from nodescope.recorder import footprint
from nodescope.recorder.notify import Notifier
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.catalogue import make_observers
from nodescope.recorder.options import MAX_FREQUENCY_HZ, SHORTEST_FLUSH_NS, RecorderOptions
from nodescope.recorder.recorder import Progress, Recorder
from nodescope.recorder.segment_length import SegmentLength
from nodescope.sources.node.identity import read_node, read_online_cpus
from nodescope.sources.systemd.locations import find_missing


def record(
    options: RecorderOptions,
    *,
    report: Callable[[str], None] = lambda message: None,
    progress: Callable[[Progress], None] | None = None,
    sealed: Callable[[Progress], None] | None = None,
) -> None:
    """Record as asked; returns when the duration is over or a signal came."""
    check(options)
    for missing in find_missing(options.places):
        report(missing)
    footprint.keep_flat()
    footprint.allow_files()
    clock = SystemClock()
    setting = Setting(options.places, options.archive)
    observers = make_observers(setting, options.without)
    writer = ArchiveWriter.open(
        options.archive,
        node=read_node(options.places.proc, options.places.sys),
        clock=clock,
        tick_ns=options.tick_ns,
        retention=Retention(options.retention_age_ns, options.retention_bytes),
    )
    # The kernel's symbols are read next, which takes more room than anything later.
    footprint.let_go(options.places.proc)
    with writer:
        Recorder(
            options,
            writer,
            clock=clock,
            notifier=Notifier(),
            observers=observers,
            owners=setting.core_owners,
            report=report,
            progress=progress,
            sealed=sealed,
        ).run()


def _check_flush(flush_ns: int, segment_ns: int) -> None:
    """Refuse to write more often than is sensible, and segments that end before a flush."""
    shortest = format_duration(SHORTEST_FLUSH_NS)
    for option, length_ns in (("--segment", segment_ns), ("--flush", flush_ns)):
        if length_ns < SHORTEST_FLUSH_NS:
            raise UsageError(
                f"{option} {format_duration(length_ns)} is too short",
                hint=f"give {shortest} or more",
            )
    if segment_ns < flush_ns:
        flush, segment = format_duration(flush_ns), format_duration(segment_ns)
        raise UsageError(
            f"--flush {flush} is longer than --segment {segment}, and each segment is flushed",
            hint=f"give a --flush of {segment} or less, or a longer --segment",
        )


def check(options: RecorderOptions) -> None:
    """Refuse what cannot be done before anything is opened."""
    if not 1 <= options.frequency_hz <= MAX_FREQUENCY_HZ:
        raise UsageError(
            f"--frequency {options.frequency_hz}", hint=f"between 1 and {MAX_FREQUENCY_HZ} Hz"
        )
    ring = options.ring_bytes
    if ring is not None and (ring < 8192 or ring & (ring - 1)):
        raise UsageError(f"--ring-size {ring}", hint="a power of two, 8KiB or more")
    if options.core_interval_ns < 10_000_000:
        raise UsageError("--core-interval is too short", hint="the kernel counts in 10 ms ticks")
    _check_flush(options.flush_ns, SegmentLength(options.segment_ns).interval_ns)
    if options.cpus is not None:
        online = read_online_cpus(options.places.sys)
        if not set(options.cpus) & set(online):
            raise UsageError(
                f"--cpu {format_cpu_list(list(options.cpus))}: none of them is online",
                hint=f"online are {format_cpu_list(online)}",
            )
