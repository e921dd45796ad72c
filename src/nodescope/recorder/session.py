"""One run of the recorder, from options to a sealed archive."""

from __future__ import annotations

from collections.abc import Callable

from nodescope.archive.retention import Retention
from nodescope.archive.writer import ArchiveWriter
from nodescope.clock import SystemClock
from nodescope.errors import UsageError
from nodescope.quantities import format_cpu_list
from nodescope.recorder import footprint
from nodescope.recorder.notify import Notifier
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.catalogue import make_observers
from nodescope.recorder.options import MAX_FREQUENCY_HZ, RecorderOptions
from nodescope.recorder.recorder import Progress, Recorder
from nodescope.sources.node.identity import read_node, read_online_cpus


def record(
    options: RecorderOptions,
    *,
    report: Callable[[str], None] = lambda message: None,
    progress: Callable[[Progress], None] | None = None,
    sealed: Callable[[Progress], None] | None = None,
) -> None:
    """Record as asked; returns when the duration is over or a signal came."""
    check(options)
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
    if options.flush_ns < 100_000_000 or options.segment_ns < options.flush_ns:
        raise UsageError("--flush and --segment", hint="100ms <= --flush <= --segment")
    if options.cpus is not None:
        online = read_online_cpus(options.places.sys)
        if not set(options.cpus) & set(online):
            raise UsageError(
                f"--cpu {format_cpu_list(list(options.cpus))}: none of them is online",
                hint=f"online are {format_cpu_list(online)}",
            )
