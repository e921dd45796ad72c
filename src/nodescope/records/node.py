"""What the node knows about itself: the tables its observers fill.

Rows of a table with many subjects (cgroups, units, statistics of a NIC) are
written when they changed, and whole at the start of each segment, so that a
segment can be understood without those before it.
"""

from __future__ import annotations

from nodescope.records.table import Column, ColumnKind, Table

_TIME = Column("time_ns", "int64", ColumnKind.TIME, "when it was read", "ns")


def _counter(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "int64", ColumnKind.COUNTER, meaning, unit, nullable=True)


def _gauge(name: str, meaning: str, unit: str = "") -> Column:
    return Column(name, "int64", ColumnKind.GAUGE, meaning, unit, nullable=True)


def _count(name: str, meaning: str) -> Column:
    return Column(name, "int64", ColumnKind.COUNT, meaning)


def _label(name: str, meaning: str) -> Column:
    return Column(name, "text", ColumnKind.LABEL, meaning, nullable=True)


def _key(name: str, meaning: str, type_: str = "text") -> Column:
    return Column(name, type_, ColumnKind.KEY, meaning)


MEMORY_CGROUPS = Table(
    "memory_cgroups",
    "How many memory cgroups the kernel tracks, and what it costs to walk them.",
    (
        _TIME,
        _key("version", "hierarchy of the memory controller: `v1`, `v2` or `hybrid`"),
        _gauge("tracked", "memory cgroups the kernel knows"),
        _gauge("visible", "of them, those that have a directory"),
        _gauge("dying", "of them, those that were removed and are still held"),
        _gauge("walk_ns", "CPU time to read `walk_file`; null when it was not read", "ns"),
        _label("walk_file", "the file read as the walk probe"),
    ),
    order=("time_ns",),
)

DYING_PARENTS = Table(
    "dying_parents",
    "What removed memory cgroups still hold, by their parent and by kind of memory.",
    (
        _TIME,
        _key("path", "the parent, from the root of the memory hierarchy"),
        _gauge(
            "dying",
            "removed children that are still held; v1 tells only how many there are in all, "
            "shared out here; null where not known",
        ),
        _label(
            "kind",
            "kind of memory held: `shmem` (tmpfs), `file` (page cache without it), `anon`, `swap`; "
            "null: only counted",
        ),
        _gauge("held_bytes", "how much of it", "bytes"),
    ),
    order=("time_ns", "path"),
)

CGROUP_CHURN = Table(
    "cgroup_churn",
    "Cgroups made and removed since the row before, by parent, pattern of name and maker.",
    (
        _TIME,
        _key("parent", "path of the parent"),
        _key("pattern", "names below it, what varies replaced by `*`"),
        _label("maker", "comm of the process that made or removed them; null if not known"),
        Column("maker_pid", "int32", ColumnKind.KEY, "its process id", nullable=True),
        _label("workload", "comm of what was last attached; null if not known"),
        _count("made", "mkdir"),
        _count("removed", "rmdir"),
        _count("released", "given up by the kernel"),
        _count("attached", "tasks moved in"),
        _gauge("unreleased", "removed over 15 s ago and not released, at this time"),
        _label("way", "`tracepoints` or `scan`"),
    ),
    order=("time_ns", "parent"),
)

SOFTNET = Table(
    "softnet",
    "Packet work of each core: `/proc/net/softnet_stat` and `/proc/softirqs`.",
    (
        _TIME,
        _key("cpu", "core", "int16"),
        _counter("processed", "packets taken from queues"),
        _counter("dropped", "packets dropped because the backlog was full"),
        _counter("squeezed", "times there was work left when the time was up"),
        _gauge("backlog", "packets that wait; null on kernels that do not tell"),
        _counter("net_rx", "NET_RX soft interrupts served"),
        _counter("net_tx", "NET_TX soft interrupts served"),
        _counter("starved_ns", "time it was starved, since the recorder started", "ns"),
    ),
    order=("cpu", "time_ns"),
)

INTERRUPTS = Table(
    "interrupts",
    "Interrupts of network devices by core; a row where the count moved.",
    (
        _TIME,
        _key("irq", "number of the interrupt", "int32"),
        _key("cpu", "core that served it", "int16"),
        _counter("count", "times served since boot"),
    ),
    order=("irq", "cpu", "time_ns"),
)

NICS = Table(
    "nics",
    "Network devices.",
    (
        _TIME,
        _key("nic", "name of the interface"),
        _label("driver", "driver"),
        _label("version", "its version as the driver says it"),
        _label("bus", "address of the device on its bus"),
        Column("up", "bool", ColumnKind.GAUGE, "operational", nullable=True),
        Column("carrier", "bool", ColumnKind.GAUGE, "has a link", nullable=True),
        _counter("carrier_changes", "times the link came or went"),
        _gauge("rx_queues", "receive queues"),
        _gauge("tx_queues", "transmit queues"),
        _counter("tx_timeouts", "transmit timeouts of all queues"),
        _counter("rx_packets", "packets received"),
        _counter("tx_packets", "packets sent"),
        _counter("rx_dropped", "packets dropped on receiving"),
        _counter("tx_errors", "errors on sending"),
    ),
    order=("nic", "time_ns"),
)

NIC_QUEUES = Table(
    "nic_queues",
    "Which interrupt and which cores serve which queue.",
    (
        _TIME,
        _key("nic", "name of the interface"),
        _key("queue", "number of the queue", "int32"),
        _label("direction", "`rx`, `tx` or `rx+tx`"),
        Column("irq", "int32", ColumnKind.KEY, "number of the interrupt", nullable=True),
        _label("irq_name", "its name"),
        _label("affinity", "cores it may go to, as in `0-5,39`"),
        _label("effective", "cores it does go to"),
        _counter("tx_timeouts", "transmit timeouts of this queue"),
    ),
    order=("nic", "queue", "time_ns"),
)

NIC_STATISTICS = Table(
    "nic_statistics",
    "What the driver counts (`ethtool -S`); a row where a value changed.",
    (
        _TIME,
        _key("nic", "name of the interface"),
        _key("name", "as the driver names it"),
        _counter("value", "raw"),
    ),
    order=("nic", "name", "time_ns"),
)

PRESSURE = Table(
    "pressure",
    "Time lost for want of a resource: `/proc/pressure`, and per cgroup where there is one.",
    (
        _TIME,
        _key("cgroup", "path of the cgroup; empty for the node"),
        _key("resource", "`cpu`, `memory`, `io` or `irq`"),
        _counter("some_us", "time in which at least one task waited", "µs"),
        _counter("full_us", "time in which all waited", "µs"),
    ),
    order=("cgroup", "resource", "time_ns"),
)

MEMORY = Table(
    "memory",
    "Memory and reclaim of the node: `/proc/meminfo` in bytes, `/proc/vmstat` raw.",
    (
        _TIME,
        _key("name", "as the file names it"),
        Column("value", "int64", ColumnKind.GAUGE, "bytes (meminfo) or a counter (vmstat)"),
    ),
    order=("name", "time_ns"),
)

CGROUPS = Table(
    "cgroups",
    "What each live cgroup uses.",
    (
        _TIME,
        _key("cgroup", "path, as samples have it"),
        _counter("usage_us", "CPU time used, by it and by cgroups below it", "µs"),
        _counter("user_us", "of it in user mode", "µs"),
        _counter("system_us", "of it in the kernel", "µs"),
        _counter("periods", "periods in which its CPU limit applied"),
        _counter("throttled", "periods in which it was throttled"),
        _counter("throttled_us", "time it was throttled", "µs"),
        _gauge("memory_bytes", "memory charged", "bytes"),
        _gauge("memory_limit_bytes", "limit of memory; null if there is none", "bytes"),
        _counter("memory_limit_hits", "times the limit was met (v1 failcnt, v2 events max)"),
        _counter("oom_kills", "tasks killed for want of memory"),
        _gauge("tasks", "tasks in it and below"),
    ),
    order=("cgroup", "time_ns"),
)

CGROUP_NAMES = Table(
    "cgroup_names",
    "Whose cgroup it is.",
    (
        _TIME,
        _key("cgroup", "path, as samples have it"),
        _label("kind", "`pod`, `container`, `unit`, `slice` or `session`"),
        _label("runtime", "`containerd`, `docker`, `cri-o`, `podman`, `ecs`, `systemd`"),
        _label("unit", "systemd unit"),
        _label("namespace", "namespace of the pod"),
        _label("pod", "name of the pod"),
        _label("pod_uid", "its uid"),
        _label("container", "name of the container"),
        _label("container_id", "its id"),
    ),
    order=("cgroup", "time_ns"),
)

UNITS = Table(
    "units",
    "systemd units: a row whenever one changed.",
    (
        _TIME,
        _key("unit", "name"),
        _label("load", "LoadState"),
        _label("active", "ActiveState"),
        _label("sub", "SubState"),
        _label("result", "Result"),
        _counter("restarts", "NRestarts: 0 again after a manual start"),
        Column("main_pid", "int32", ColumnKind.KEY, "MainPID; null if none", nullable=True),
        _label("exit_code", "how the main process last ended: `exited`, `killed`, `dumped`"),
        _gauge("exit_status", "its exit status or signal"),
        _label("file_state", "UnitFileState: `enabled`, `disabled`, `static`, `masked`, …"),
        _label("preset", "UnitFilePreset"),
        _label("vendor", "package, vendor or administrator: where the unit file comes from"),
        _label("wanted_by", "units that want or require it, separated by spaces"),
        _label("why_not_started", "why an enabled unit does not run; `started` if it did"),
        _label("cgroup", "its cgroup, as samples have it"),
        _counter("starts", "starts seen since boot"),
        _counter("failures", "failed ends seen since boot"),
        _counter("successes", "successful ends seen since boot"),
    ),
    order=("unit", "time_ns"),
)

CONTAINERS = Table(
    "containers",
    "Containers of docker, containerd, podman and pods: a row whenever one changed.",
    (
        _TIME,
        _key("runtime", "who runs it"),
        _key("id", "its id"),
        _label("name", "its name, stable over ids"),
        _label("image", "its image"),
        _label("state", "`created`, `running`, `exited`, `removed`, …"),
        Column("pid", "int32", ColumnKind.KEY, "its first process; null if none", nullable=True),
        _gauge("exit_code", "of its last end"),
        _counter("restarts", "as the runtime counts them: a new id starts at 0"),
        _gauge("started_wall_ns", "wall time of its last start", "ns since the epoch"),
        _gauge("finished_wall_ns", "wall time of its last end", "ns since the epoch"),
        _label("cgroup", "its cgroup, as samples have it"),
        _label("cgroup_parent", "the parent of it"),
        _label("namespace", "namespace of its pod"),
        _label("pod", "its pod"),
    ),
    order=("runtime", "name", "time_ns"),
)

SOURCE_COSTS = Table(
    "source_costs",
    "What each observer of the node cost the recorder.",
    (
        _TIME,
        _key("source", "name of the observer"),
        _counter("cpu_ns", "CPU time used since the recorder started", "ns"),
        _counter("reads", "times it was asked"),
        _counter("failures", "of them, those that failed"),
        _gauge("interval_ns", "how often it is asked", "ns"),
        _gauge("slowest_ns", "the longest it took since the row before", "ns"),
    ),
    order=("source", "time_ns"),
)

KERNEL_LOG = Table(
    "kernel_log",
    "The kernel's log, line by line, as `/dev/kmsg` gives it.",
    (
        _TIME,
        Column("sequence", "int64", ColumnKind.KEY, "the kernel's own number of the record"),
        Column("level", "int16", ColumnKind.KEY, "0 emergency … 7 debug"),
        Column("facility", "int16", ColumnKind.KEY, "0 kernel, 1 user, …"),
        Column("user", "bool", ColumnKind.KEY, "written by a user, not by the kernel"),
        Column("text", "string", ColumnKind.LABEL, "the message"),
    ),
    order=("time_ns", "sequence"),
)

NODE_TABLES = (
    MEMORY_CGROUPS,
    DYING_PARENTS,
    CGROUP_CHURN,
    SOFTNET,
    INTERRUPTS,
    NICS,
    NIC_QUEUES,
    NIC_STATISTICS,
    PRESSURE,
    MEMORY,
    CGROUPS,
    CGROUP_NAMES,
    UNITS,
    CONTAINERS,
    SOURCE_COSTS,
    KERNEL_LOG,
)
