"""The tables of limits, counters of trouble, written files, blocked tasks, cores and traces."""

from __future__ import annotations

from typing import Annotated

from nodescope.records.table import Row, Time, counter, gauge, key, label


class LimitRow(
    Row,
    table="limits",
    help="How much of each limited thing is used; a row where that changed noticeably.",
    sorted_by=("name", "scope", "time_ns"),
    subject=("name", "scope"),
    observers=("limits", "file_systems", "cgroups"),
):
    """Row of `limits`."""

    time_ns: Time
    name: Annotated[
        str,
        key(
            "`conntrack`, `files`, `threads`, `neighbours`, `tcp_memory`, `ports`, `disk` (bytes), "
            "`inodes` or `pids` (of a cgroup)"
        ),
    ]
    scope: Annotated[
        str,
        key(
            "`node`, a mount point, or a cgroup; `conntrack` of a cgroup: of its network namespace"
        ),
    ]
    used: Annotated[int | None, gauge("how much is used, in the unit of the limit")] = None
    most: Annotated[int | None, gauge("how much there is; null if it is not limited")] = None


class TroubleCountRow(
    Row,
    table="trouble_counts",
    help="Counters that only trouble raises; a row where one changed. Of cgroups and hardware, "
    "one that is zero has no row.",
    sorted_by=("name", "subject", "time_ns"),
    subject=("name", "subject"),
    observers=("limits", "file_systems", "hardware", "cgroups"),
):
    """Row of `trouble_counts`."""

    time_ns: Time
    name: Annotated[str, key("name of the counter")]
    subject: Annotated[str, key("device, cgroup or core that it is of; empty for the node")]
    value: Annotated[int | None, counter("times since boot")] = None


class WrittenFileRow(
    Row,
    table="written_files",
    help="Files that processes had open for writing on a file system that filled up.",
    sorted_by=("mount", "time_ns"),
    subject=("mount", "pid", "inode"),
    observers=("file_systems",),
):
    """Row of `written_files`."""

    time_ns: Time
    mount: Annotated[str, key("mount point of the file system, as in `limits`")]
    pid: Annotated[int, key("process id", type="int32")]
    inode: Annotated[int, key("number of the file in its file system")]
    comm: Annotated[str, label("name of the process")]
    cgroup: Annotated[str | None, label("cgroup path; null if it could not be read")] = None
    path: Annotated[str | None, label("path of the file, as the process has it")] = None
    size_bytes: Annotated[int | None, gauge("space that the file takes", "bytes")] = None
    deleted: Annotated[bool | None, gauge("it was deleted, and takes space while it is open")] = (
        None
    )
    complete: Annotated[
        bool | None, gauge("all processes were looked at, within what a look may cost")
    ] = None


class BlockedTaskRow(
    Row,
    table="blocked_tasks",
    help="Tasks in uninterruptible sleep for over a second, and what they wait for.",
    sorted_by=("time_ns", "tid"),
    subject=("tid",),
    observers=("blocked_tasks",),
):
    """Row of `blocked_tasks`."""

    time_ns: Time
    pid: Annotated[int, key("process id", type="int32")]
    tid: Annotated[int, key("thread id", type="int32")]
    comm: Annotated[str, label("name of the thread")]
    cgroup: Annotated[str | None, label("cgroup path; null if it could not be read")] = None
    blocked_ns: Annotated[int | None, gauge("time that it has been seen blocked", "ns")] = None
    waits_in: Annotated[str | None, label("function of the kernel that it sleeps in (`wchan`)")] = (
        None
    )
    stack: Annotated[
        str | None,
        label("functions of the kernel, outermost first, separated by `;`; null if not readable"),
    ] = None
    frozen: Annotated[
        bool | None, gauge("its cgroup is frozen (`cgroup.freeze`, `freezer.state`)")
    ] = None


class CoreOwnerRow(
    Row,
    table="core_owners",
    help="Threads that had a core to themselves for seconds, and how they are scheduled.",
    sorted_by=("cpu", "time_ns"),
    subject=("cpu",),
    observers=("core_owners",),
):
    """Row of `core_owners`."""

    time_ns: Time
    cpu: Annotated[int, key("core", type="int16")]
    pid: Annotated[int, key("process id", type="int32")]
    tid: Annotated[int, key("thread id", type="int32")]
    comm: Annotated[str, label("name of the thread")]
    cgroup: Annotated[str | None, label("cgroup path; null if it could not be read")] = None
    policy: Annotated[str | None, label("`other`, `fifo`, `rr`, `batch`, `idle` or `deadline`")] = (
        None
    )
    priority: Annotated[
        int | None, gauge("real-time priority 1 to 99, or the nice value", type="int16")
    ] = None
    affinity: Annotated[str | None, label("cores that it may run on, as in `0-5,39`")] = None
    owned_ns: Annotated[int | None, gauge("time that it has had the core", "ns")] = None


class CallTraceRow(
    Row,
    table="call_traces",
    help="Call traces of the kernel log, each as a stack.",
    sorted_by=("time_ns", "sequence"),
    subject=("sequence",),
    observers=("kernel_log",),
):
    """Row of `call_traces`."""

    time_ns: Time
    sequence: Annotated[int, key("number of its first line in the log")]
    cpu: Annotated[int | None, key("core that it is of; null if not said", type="int16")] = None
    pid: Annotated[int | None, key("task that it is of; null if not said", type="int32")] = None
    comm: Annotated[str | None, label("name of the task")] = None
    event_kind: Annotated[
        str | None, label("kind of the event that the trace belongs to; null if none")
    ] = None
    work: Annotated[str | None, label("work item of a kernel worker")] = None
    interrupted: Annotated[
        bool | None, gauge("an interrupt's frames stand above; they are left out")
    ] = None
    stack: Annotated[str, label("functions of the kernel, outermost first, separated by `;`")]


# Those that an observer fills.
WITNESS_ROWS: tuple[type[Row], ...] = (
    LimitRow,
    TroubleCountRow,
    WrittenFileRow,
    BlockedTaskRow,
    CoreOwnerRow,
    CallTraceRow,
)
