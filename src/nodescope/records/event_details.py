"""The details of every kind of event: their fields, and the meaning of each.

`records.event_kinds` has the class of each kind. Every field may be None: not known.
Exits of units, containers and jobs have the same fields: `exit_status` is the number (the exit
status, or the signal that ended the process), and `exit_kind` is systemd's word for it
(`exited`, `killed`, `dumped`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from nodescope.records.details import Details, detail

# -- the recorder about itself --------------------------------------------------------


class FrozenDetails(Details):
    """The range that was frozen, and the event it was frozen for."""

    kind: Annotated[str | None, detail("kind of the event that froze the range")] = None
    subject: Annotated[str | None, detail("subject of that event")] = None
    from_ns: Annotated[int | None, detail("start of the range, wall time in ns")] = None
    to_ns: Annotated[int | None, detail("end of the range, wall time in ns")] = None


class FoldingDetails(Details):
    """The cost of new stacks, and the cost that is allowed."""

    frames_per_s: Annotated[int | None, detail("frames of new stacks per second, lately")] = None
    allowed_per_s: Annotated[int | None, detail("frames per second that the budget allows")] = None


class ImportDetails(Details):
    """How far the rows of an imported file can be trusted."""

    estimated: Annotated[
        bool | None, detail("the times are estimated, because the file does not say them")
    ] = None


# -- lines of the kernel's log --------------------------------------------------------


class KernelLineDetails(Details):
    """Where a line stands in the kernel's log."""

    sequence: Annotated[int | None, detail("sequence number of the line in `kernel_log`")] = None
    user: Annotated[
        bool | None, detail("a user wrote the line into `/dev/kmsg`, not the kernel")
    ] = None


class CounterDetails(KernelLineDetails):
    """What a counter adds, for trouble that may leave no line in the log."""

    statistic: Annotated[str | None, detail("the counter that rose")] = None
    before: Annotated[int | None, detail("value of the counter at the previous reading")] = None
    value: Annotated[int | None, detail("value of the counter now")] = None
    within_s: Annotated[
        float | None, detail("seconds since the previous reading; the event happened in that time")
    ] = None
    known_from: Annotated[
        str | None, detail("`counters`: shown by a counter only, not by the kernel log")
    ] = None


class NicDetails(KernelLineDetails):
    """Trouble of a network device, reported by its driver or shown by counters."""

    driver: Annotated[str | None, detail("the driver")] = None
    device: Annotated[str | None, detail("address of the device on its bus")] = None
    interface: Annotated[str | None, detail("name of the interface")] = None
    queue: Annotated[int | None, detail("the queue")] = None
    queues: Annotated[tuple[int, ...] | None, detail("the queues, if there are several")] = None
    version: Annotated[str | None, detail("version of the driver")] = None
    resets: Annotated[bool | None, detail("the driver resets the device because of this")] = None
    statistic: Annotated[str | None, detail("the counter that rose")] = None
    before: Annotated[int | None, detail("value of the counter at the previous reading")] = None
    value: Annotated[int | None, detail("value of the counter now")] = None
    rise: Annotated[int | None, detail("increase of the counter")] = None
    known_from: Annotated[
        str | None, detail("`counters`: shown by a counter only, not by the kernel log")
    ] = None
    within_s: Annotated[
        float | None, detail("seconds since the previous reading; the event happened in that time")
    ] = None


class NicTransmitDetails(NicDetails):
    """Packets that were not transmitted or not completed in time."""

    poll_scheduled: Annotated[
        bool | None, detail("the driver's poll (NAPI) was scheduled and had not run")
    ] = None
    since_poll_ms: Annotated[int | None, detail("time since the queue was polled")] = None
    since_interrupt_ms: Annotated[int | None, detail("time since its last interrupt")] = None
    since_tx_ms: Annotated[int | None, detail("time since the last transmission")] = None
    threshold_ms: Annotated[int | None, detail("time that the driver waits")] = None
    timed_out_ms: Annotated[int | None, detail("time that the kernel's watchdog waited")] = None
    runs_timer_on: Annotated[
        int | None, detail("core on which the watchdog's timer ran: *not* the pegged one")
    ] = None
    index: Annotated[int | None, detail("index of the packet in the ring")] = None
    late: Annotated[int | None, detail("packets not completed in time")] = None
    lost: Annotated[int | None, detail("packets given up as lost")] = None
    lost_threshold: Annotated[
        int | None, detail("number of lost packets at which the driver resets")
    ] = None
    pending_ms: Annotated[int | None, detail("time that the oldest of them waits")] = None
    poll_schedule_changes: Annotated[int | None, detail("times the poll was scheduled")] = None


class NicResetDetails(NicDetails):
    """A reset of a network device."""

    reason: Annotated[str | None, detail("reason, if the driver reports it")] = None
    level: Annotated[int | None, detail("level of the reset, by the driver")] = None
    status: Annotated[int | None, detail("result: 0, or an error")] = None


class NicKeepaliveDetails(NicDetails):
    """A missing keep-alive."""

    since_keepalive_ms: Annotated[int | None, detail("time since the last keep-alive")] = None


class NicRecoveryDetails(NicDetails):
    """Completions that the driver found without an interrupt."""

    recovered: Annotated[int | None, detail("number of completions")] = None


class SoftLockupDetails(CounterDetails):
    """A core that did not schedule."""

    stuck_s: Annotated[int | None, detail("duration in seconds")] = None
    comm: Annotated[str | None, detail("name of the task on the core")] = None
    pid: Annotated[int | None, detail("id of the task")] = None


class RcuStallDetails(CounterDetails):
    """A stall of RCU."""

    flavor: Annotated[str | None, detail("flavour of RCU: `rcu_preempt`, `rcu_sched`, …")] = None
    starved_jiffies: Annotated[int | None, detail("time that its thread did not run")] = None


class HungTaskDetails(CounterDetails):
    """A task that was blocked."""

    blocked_s: Annotated[int | None, detail("minimum duration in seconds")] = None
    comm: Annotated[str | None, detail("name of the task")] = None
    pid: Annotated[int | None, detail("id of the task")] = None
    waits_for: Annotated[str | None, detail("kind of lock that it waits for")] = None
    holder: Annotated[str | None, detail("name of the task that likely holds the lock")] = None
    holder_pid: Annotated[int | None, detail("id of that task")] = None


class WorkItemDetails(KernelLineDetails):
    """A work item that hogged its core."""

    function: Annotated[str | None, detail("the work item's function")] = None
    hogged_ms: Annotated[int | None, detail("minimum time that it ran")] = None
    times: Annotated[int | None, detail("times so far")] = None


class WorkPoolDetails(KernelLineDetails):
    """A pool of work items that made no progress."""

    pool_cpus: Annotated[str | None, detail("cores that the pool serves")] = None
    stuck_s: Annotated[int | None, detail("duration in seconds")] = None


class OomKillDetails(CounterDetails):
    """A task that the OOM killer killed."""

    constraint: Annotated[
        str | None, detail("the limit that was reached, by the kernel's name")
    ] = None
    memcg: Annotated[str | None, detail("memory cgroup whose limit was reached")] = None
    task_memcg: Annotated[str | None, detail("memory cgroup of the killed task")] = None
    comm: Annotated[str | None, detail("name of the killed task")] = None
    pid: Annotated[int | None, detail("id of the task")] = None
    uid: Annotated[int | None, detail("user of the task")] = None
    score: Annotated[int | None, detail("badness score by which it was chosen")] = None
    virtual_bytes: Annotated[int | None, detail("virtual size of the task")] = None
    anonymous_bytes: Annotated[int | None, detail("anonymous memory of the task")] = None
    asked_by: Annotated[str | None, detail("name of the task that asked for memory")] = None
    usage_bytes: Annotated[int | None, detail("memory of the cgroup at its limit")] = None
    limit_bytes: Annotated[int | None, detail("the limit of the cgroup")] = None
    whole_group: Annotated[bool | None, detail("all tasks of the cgroup are killed")] = None


# -- cores, memory cgroups, network devices -------------------------------------------


class PeggedCoreDetails(Details):
    """A pegged core."""

    seconds: Annotated[float | None, detail("duration in seconds")] = None
    share: Annotated[float | None, detail("share of that time in the kernel")] = None
    from_ns: Annotated[int | None, detail("start, on the monotonic clock")] = None
    to_ns: Annotated[int | None, detail("end, on the monotonic clock")] = None
    ongoing: Annotated[
        bool | None, detail("true if it was not over when the event was written")
    ] = None
    thread: Annotated[int | None, detail("thread with most of the samples on the core")] = None
    comm: Annotated[str | None, detail("name of the thread")] = None
    thread_share: Annotated[float | None, detail("share of the thread in those samples")] = None


class StarvedCoreDetails(Details):
    """A core that served no packets although some waited."""

    core: Annotated[int | None, detail("the core")] = None
    seconds: Annotated[float | None, detail("duration in seconds")] = None
    over: Annotated[bool | None, detail("true if it was over when the event was written")] = None
    evidence: Annotated[tuple[str, ...] | None, detail("evidence that packets waited")] = None
    backlog: Annotated[int | None, detail("maximum number of waiting packets")] = None
    interrupts: Annotated[int | None, detail("interrupts in that time")] = None
    threads: Annotated[tuple[str, ...] | None, detail("threads that were delayed")] = None


class ZombieDetails(Details):
    """The number of memory cgroups when zombies passed a threshold."""

    dying: Annotated[int | None, detail("zombies: removed cgroups that the kernel keeps")] = None
    tracked: Annotated[int | None, detail("all cgroups that the kernel keeps")] = None
    visible: Annotated[int | None, detail("cgroups that have a directory")] = None
    threshold: Annotated[int | None, detail("the threshold that was passed")] = None


class CarrierDetails(Details):
    """A link that came or went."""

    carrier: Annotated[bool | None, detail("true if the link is up now")] = None
    changes: Annotated[int | None, detail("changes since the previous reading")] = None


class MovedInterruptDetails(Details):
    """An interrupt that another core serves now."""

    irq: Annotated[int | None, detail("the interrupt")] = None
    queue: Annotated[int | None, detail("the queue that it serves")] = None
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
    result: Annotated[str | None, detail("result in systemd's word")] = None
    ran_s: Annotated[float | None, detail("duration of the run")] = None


class UnitChildDetails(Details):
    """A child that fails again and again inside a unit that runs on."""

    child: Annotated[str | None, detail("name of the child")] = None
    command: Annotated[str | None, detail("command of the child")] = None
    failed_ends: Annotated[int | None, detail("number of failed exits")] = None
    ends: Annotated[Mapping[str, int] | None, detail("number of exits by exit code or signal")] = (
        None
    )
    longest_ran_s: Annotated[float | None, detail("duration of the longest of those runs")] = None
    watched_s: Annotated[float | None, detail("time that the unit was watched")] = None
    main: Annotated[str | None, detail("command of the unit's main process")] = None
    main_age_s: Annotated[float | None, detail("age of that process")] = None
    cgroup: Annotated[str | None, detail("cgroup of the unit")] = None


class UnitLinesDetails(Details):
    """Lines of a unit about failed exits."""

    times: Annotated[int | None, detail("number of lines about exits with an error")] = None
    over_s: Annotated[float | None, detail("seconds from the first line to the last")] = None
    last_line: Annotated[str | None, detail("the last such line")] = None
    lines: Annotated[tuple[str, ...] | None, detail("the latest line of each kind")] = None


# -- containers -----------------------------------------------------------------------


class ContainerDetails(Details):
    """The identity of a container."""

    runtime: Annotated[str | None, detail("container runtime")] = None
    id: Annotated[str | None, detail("id of the container")] = None
    name: Annotated[str | None, detail("name, stable over ids")] = None
    image: Annotated[str | None, detail("image")] = None
    restarts: Annotated[int | None, detail("restarts of this id, as the runtime counts them")] = (
        None
    )
    cgroup: Annotated[str | None, detail("cgroup of the container")] = None
    cgroup_parent: Annotated[str | None, detail("parent of the cgroup")] = None
    namespace: Annotated[str | None, detail("namespace of the pod")] = None
    pod: Annotated[str | None, detail("name of the pod")] = None


class ContainerStartDetails(ContainerDetails):
    """A container that started."""

    replaces: Annotated[str | None, detail("id of the previous container of this name")] = None


class ContainerExitDetails(ContainerDetails):
    """A container that ended."""

    exit_status: Annotated[
        int | None, detail("exit status of the main process", formerly="exit_code")
    ] = None
    ran_s: Annotated[float | None, detail("duration of the run")] = None


class ContainerLoopDetails(Details):
    """A container that is started again and again."""

    runtime: Annotated[str | None, detail("container runtime")] = None
    starts: Annotated[int | None, detail("starts seen")] = None
    ids: Annotated[int | None, detail("number of different ids")] = None
    failures: Annotated[int | None, detail("runs that failed")] = None
    exit_statuses: Annotated[
        tuple[int, ...] | None, detail("the different exit statuses", formerly="exit_codes")
    ] = None
    by: Annotated[str | None, detail("what the runs share: `name`, or only the `image`")] = None
    per_minute: Annotated[float | None, detail("starts per minute")] = None
    cgroup_parent: Annotated[str | None, detail("parent of the cgroups")] = None


# -- marks and jobs -------------------------------------------------------------------


class MarkDetails(Details):
    """The mark, and the user who made it."""

    mark: Annotated[str | None, detail("id of the mark")] = None
    user: Annotated[str | None, detail("user who made it")] = None


class FixStepDetails(MarkDetails):
    """One step of a remedy that `nodescope fix` took or took back."""

    plan: Annotated[str | None, detail("id of the plan")] = None
    number: Annotated[int | None, detail("number of the step in the plan, from 1")] = None
    step: Annotated[str | None, detail("kind of the step, such as `stop_unit`")] = None
    target: Annotated[str | None, detail("unit, container, file or value that it changes")] = None
    outcome: Annotated[str | None, detail("`applied`, `failed`, `undone` or `kept`")] = None


class JobDetails(MarkDetails):
    """A job that failed, as its scheduler or a mark reports it."""

    job: Annotated[str | None, detail("id of the job")] = None
    entrypoint: Annotated[str | None, detail("command of the job")] = None
    error_type: Annotated[str | None, detail("kind of failure, by the scheduler")] = None
    exit_status: Annotated[
        int | None, detail("exit status of the job's driver", formerly="exit_code")
    ] = None
