"""The details of every kind of event: which fields they have, and what each means.

`records.events` says which kind of event has which class. Everything may be None: not known.
A process ended in one of two ways, in the same words for units, containers and jobs:
`exit_status` is the number (its exit status, or the signal that ended it), and `exit_kind`
the word that systemd has for it (`exited`, `killed`, `dumped`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from nodescope.records.details import Details, detail

# -- the recorder about itself --------------------------------------------------------


class FrozenDetails(Details):
    """The range that was frozen, and the event it was frozen for."""

    kind: Annotated[str | None, detail("kind of the event it was frozen for")] = None
    subject: Annotated[str | None, detail("subject of that event")] = None
    from_ns: Annotated[int | None, detail("wall time it is kept from, in ns")] = None
    to_ns: Annotated[int | None, detail("wall time it is kept to, in ns")] = None


class FoldingDetails(Details):
    """What new stacks cost, and what they may cost."""

    frames_per_s: Annotated[int | None, detail("frames of new stacks per second, lately")] = None
    allowed_per_s: Annotated[int | None, detail("frames per second that the budget allows")] = None


# -- lines of the kernel's log --------------------------------------------------------


class KernelLineDetails(Details):
    """Where a line stands in the kernel's log."""

    sequence: Annotated[int | None, detail("the kernel's number of the line in `kernel_log`")] = (
        None
    )
    user: Annotated[
        bool | None, detail("a user wrote the line into `/dev/kmsg`, not the kernel")
    ] = None


class NicDetails(KernelLineDetails):
    """Trouble of a network device: as its driver reports it, or as counters show it."""

    driver: Annotated[str | None, detail("the driver")] = None
    device: Annotated[str | None, detail("address of the device on its bus")] = None
    interface: Annotated[str | None, detail("name of the interface")] = None
    queue: Annotated[int | None, detail("the queue it is about")] = None
    queues: Annotated[tuple[int, ...] | None, detail("the queues, where they are several")] = None
    version: Annotated[str | None, detail("version of the driver")] = None
    resets: Annotated[bool | None, detail("the driver resets the device on account of this")] = None
    statistic: Annotated[str | None, detail("the counter that rose")] = None
    before: Annotated[int | None, detail("the counter at the reading before")] = None
    value: Annotated[int | None, detail("the counter now")] = None
    rise: Annotated[int | None, detail("by how much it rose")] = None
    known_from: Annotated[
        str | None, detail("`counters`: it is only counted, and not in the kernel's log")
    ] = None
    within_s: Annotated[
        float | None, detail("seconds since the reading before: it happened in that time")
    ] = None


class NicTransmitDetails(NicDetails):
    """Packets that were not transmitted or not completed in time."""

    poll_scheduled: Annotated[
        bool | None, detail("the driver's poll (NAPI) was scheduled and had not run")
    ] = None
    since_poll_ms: Annotated[int | None, detail("how long the queue was not polled")] = None
    since_interrupt_ms: Annotated[int | None, detail("how long it had no interrupt")] = None
    since_tx_ms: Annotated[int | None, detail("how long nothing was transmitted")] = None
    threshold_ms: Annotated[int | None, detail("how long the driver waits")] = None
    timed_out_ms: Annotated[int | None, detail("how long the kernel's watchdog waited")] = None
    runs_timer_on: Annotated[
        int | None, detail("core on which the watchdog's timer ran: *not* the pegged one")
    ] = None
    index: Annotated[int | None, detail("place of the packet in the ring")] = None
    late: Annotated[int | None, detail("packets not completed in time")] = None
    lost: Annotated[int | None, detail("packets given up as lost")] = None
    lost_threshold: Annotated[int | None, detail("lost packets from which it resets")] = None
    pending_ms: Annotated[int | None, detail("how long the oldest of them waits")] = None
    poll_schedule_changes: Annotated[int | None, detail("how often the poll was scheduled")] = None


class NicResetDetails(NicDetails):
    """A reset of a network device."""

    reason: Annotated[str | None, detail("why, where the driver reports it")] = None
    level: Annotated[int | None, detail("how thorough the reset is, by the driver's count")] = None
    status: Annotated[int | None, detail("how it ended: 0, or an error")] = None


class NicKeepaliveDetails(NicDetails):
    """A keep-alive that did not come."""

    since_keepalive_ms: Annotated[int | None, detail("how long none came")] = None


class NicRecoveryDetails(NicDetails):
    """Completions that the driver found without an interrupt."""

    recovered: Annotated[int | None, detail("how many")] = None


class SoftLockupDetails(KernelLineDetails):
    """A core that did not schedule."""

    stuck_s: Annotated[int | None, detail("for how many seconds")] = None
    comm: Annotated[str | None, detail("the task that ran there")] = None
    pid: Annotated[int | None, detail("its id")] = None


class RcuStallDetails(KernelLineDetails):
    """A stall of RCU."""

    flavor: Annotated[str | None, detail("which RCU: `rcu_preempt`, `rcu_sched`, …")] = None
    starved_jiffies: Annotated[int | None, detail("how long its own thread did not run")] = None


class HungTaskDetails(KernelLineDetails):
    """A task that was blocked."""

    blocked_s: Annotated[int | None, detail("for more than so many seconds")] = None
    comm: Annotated[str | None, detail("the task")] = None
    pid: Annotated[int | None, detail("its id")] = None


class WorkItemDetails(KernelLineDetails):
    """A work item that hogged its core."""

    function: Annotated[str | None, detail("the work item's function")] = None
    hogged_ms: Annotated[int | None, detail("how long it ran, at the least")] = None
    times: Annotated[int | None, detail("how often so far")] = None


class WorkPoolDetails(KernelLineDetails):
    """A pool of work items that made no progress."""

    pool_cpus: Annotated[str | None, detail("the cores it serves")] = None
    stuck_s: Annotated[int | None, detail("for how many seconds")] = None


class OomKillDetails(KernelLineDetails):
    """A task that the kernel killed for want of memory."""

    constraint: Annotated[str | None, detail("which limit was reached, by the kernel's name")] = (
        None
    )
    memcg: Annotated[str | None, detail("memory cgroup whose limit was reached")] = None
    task_memcg: Annotated[str | None, detail("memory cgroup of the killed task")] = None
    comm: Annotated[str | None, detail("the killed task")] = None
    pid: Annotated[int | None, detail("its id")] = None
    uid: Annotated[int | None, detail("its user")] = None
    score: Annotated[int | None, detail("its badness, by which it was chosen")] = None
    virtual_bytes: Annotated[int | None, detail("its virtual size")] = None
    anonymous_bytes: Annotated[int | None, detail("anonymous memory it held")] = None


# -- cores, memory cgroups, network devices -------------------------------------------


class PeggedCoreDetails(Details):
    """A core that was in the kernel all the time."""

    seconds: Annotated[float | None, detail("for how long")] = None
    share: Annotated[float | None, detail("share of that time the kernel had the core")] = None
    from_ns: Annotated[int | None, detail("since when, on the monotonic clock")] = None
    to_ns: Annotated[int | None, detail("until when, on the monotonic clock")] = None
    ongoing: Annotated[bool | None, detail("whether it went on at that time")] = None
    thread: Annotated[int | None, detail("thread with most of the samples taken there")] = None
    comm: Annotated[str | None, detail("its name")] = None
    thread_share: Annotated[float | None, detail("its share of those samples")] = None


class StarvedCoreDetails(Details):
    """A core that served no packets although some waited."""

    core: Annotated[int | None, detail("the core")] = None
    seconds: Annotated[float | None, detail("for how long")] = None
    over: Annotated[bool | None, detail("whether it was over at that time")] = None
    evidence: Annotated[tuple[str, ...] | None, detail("what shows that packets waited")] = None
    backlog: Annotated[int | None, detail("the most packets that waited")] = None
    interrupts: Annotated[int | None, detail("interrupts that came meanwhile")] = None
    threads: Annotated[tuple[str, ...] | None, detail("threads that were held up")] = None


class ZombieDetails(Details):
    """Removed memory cgroups when they passed a threshold."""

    dying: Annotated[int | None, detail("removed ones that the kernel keeps")] = None
    tracked: Annotated[int | None, detail("all that the kernel keeps")] = None
    visible: Annotated[int | None, detail("those that exist as directories")] = None
    threshold: Annotated[int | None, detail("the threshold that was passed")] = None


class CarrierDetails(Details):
    """A link that came or went."""

    carrier: Annotated[bool | None, detail("whether it is up now")] = None
    changes: Annotated[int | None, detail("changes since the reading before")] = None


class MovedInterruptDetails(Details):
    """An interrupt that another core serves now."""

    irq: Annotated[int | None, detail("the interrupt")] = None
    queue: Annotated[int | None, detail("the queue it serves")] = None
    moved_from: Annotated[str | None, detail("cores that served it before", key="from")] = None
    moved_to: Annotated[str | None, detail("cores that serve it now", key="to")] = None


# -- units ----------------------------------------------------------------------------


class UnitRunDetails(Details):
    """One run of a unit, and how it ended."""

    invocation: Annotated[str | None, detail("systemd's id of the run")] = None
    restarts: Annotated[int | None, detail("restarts so far, as systemd counts them")] = None
    exit_kind: Annotated[
        str | None,
        detail("how the main process ended: `exited`, `killed` or `dumped`", formerly="exit_code"),
    ] = None
    exit_status: Annotated[int | None, detail("its exit status, or the signal that ended it")] = (
        None
    )
    result: Annotated[str | None, detail("why it failed, in systemd's word")] = None
    ran_s: Annotated[float | None, detail("how long it ran")] = None


class UnitChildDetails(Details):
    """A child that fails again and again inside a unit that runs on."""

    child: Annotated[str | None, detail("name of the child")] = None
    command: Annotated[str | None, detail("its command")] = None
    failed_ends: Annotated[int | None, detail("how often it failed")] = None
    ends: Annotated[Mapping[str, int] | None, detail("how often in which way")] = None
    longest_ran_s: Annotated[float | None, detail("the longest of those runs")] = None
    watched_s: Annotated[float | None, detail("how long the unit was watched")] = None
    main: Annotated[str | None, detail("command of the unit's main process")] = None
    main_age_s: Annotated[float | None, detail("how long that runs")] = None
    cgroup: Annotated[str | None, detail("cgroup of the unit")] = None


class UnitLinesDetails(Details):
    """What a unit logs of the ends of what it started."""

    times: Annotated[int | None, detail("how often it logged of an end with an error")] = None
    over_s: Annotated[float | None, detail("seconds from the first to the last")] = None
    last_line: Annotated[str | None, detail("the last such line")] = None
    lines: Annotated[tuple[str, ...] | None, detail("the latest line of each kind")] = None


# -- containers -----------------------------------------------------------------------


class ContainerDetails(Details):
    """Which container it is."""

    runtime: Annotated[str | None, detail("who runs it")] = None
    id: Annotated[str | None, detail("its id")] = None
    name: Annotated[str | None, detail("its name, stable over ids")] = None
    image: Annotated[str | None, detail("its image")] = None
    restarts: Annotated[int | None, detail("restarts of this id, as the runtime counts them")] = (
        None
    )
    cgroup: Annotated[str | None, detail("its cgroup")] = None
    cgroup_parent: Annotated[str | None, detail("the parent of that")] = None
    namespace: Annotated[str | None, detail("namespace of its pod")] = None
    pod: Annotated[str | None, detail("its pod")] = None


class ContainerStartDetails(ContainerDetails):
    """A container that started."""

    replaces: Annotated[str | None, detail("id that had the same name before")] = None


class ContainerExitDetails(ContainerDetails):
    """A container that ended."""

    exit_status: Annotated[
        int | None, detail("exit status of its main process", formerly="exit_code")
    ] = None
    ran_s: Annotated[float | None, detail("how long it ran")] = None


class ContainerLoopDetails(Details):
    """A container that is started again and again."""

    runtime: Annotated[str | None, detail("who runs it")] = None
    starts: Annotated[int | None, detail("starts seen")] = None
    ids: Annotated[int | None, detail("different ids among them")] = None
    failures: Annotated[int | None, detail("runs that failed")] = None
    exit_statuses: Annotated[
        tuple[int, ...] | None, detail("the different exit statuses", formerly="exit_codes")
    ] = None
    by: Annotated[
        str | None, detail("what the runs have in common: `name`, or only the `image`")
    ] = None
    per_minute: Annotated[float | None, detail("starts per minute")] = None
    cgroup_parent: Annotated[str | None, detail("parent of its cgroups")] = None


# -- marks and jobs -------------------------------------------------------------------


class MarkDetails(Details):
    """Who marked a moment."""

    mark: Annotated[str | None, detail("id of the mark")] = None
    user: Annotated[str | None, detail("who made it")] = None


class JobDetails(MarkDetails):
    """A job that failed, as its scheduler or a mark reports it."""

    job: Annotated[str | None, detail("id of the job")] = None
    entrypoint: Annotated[str | None, detail("what it ran")] = None
    error_type: Annotated[str | None, detail("kind of failure, in the scheduler's word")] = None
    exit_status: Annotated[
        int | None, detail("exit status of its driver", formerly="exit_code")
    ] = None
