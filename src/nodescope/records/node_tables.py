"""The tables of the node's state, one or more per observer.

Rows of a table with many subjects (cgroups, units, statistics of a NIC) are
written when a subject changes, and all of them at the start of each segment, so
that a segment can be read without earlier ones.
"""

from __future__ import annotations

from typing import Annotated

from nodescope.records.table import Row, Table, Time, count, counter, gauge, key, label, time
from nodescope.records.witness_tables import WITNESS_ROWS


class MemoryCgroupsRow(
    Row,
    table="memory_cgroups",
    help="Number of memory cgroups that the kernel tracks, and the cost of walking them.",
    sorted_by=("time_ns",),
    observers=("memory_cgroups",),
):
    """Row of `memory_cgroups`."""

    time_ns: Time
    version: Annotated[str, key("hierarchy of the memory controller: `v1`, `v2` or `hybrid`")]
    tracked: Annotated[int | None, gauge("memory cgroups that the kernel tracks")] = None
    visible: Annotated[int | None, gauge("tracked cgroups that have a directory")] = None
    dying: Annotated[int | None, gauge("tracked cgroups that were removed (zombies)")] = None
    walk_ns: Annotated[
        int | None, gauge("CPU time to read `walk_file`; null if it was not read", "ns")
    ] = None
    walk_file: Annotated[str | None, label("file that is read to measure a walk")] = None


class DyingParentRow(
    Row,
    table="dying_parents",
    help="Memory that pins zombie memory cgroups, by their parent and kind of memory.",
    sorted_by=("time_ns", "path"),
    subject=("path", "kind"),
    observers=("memory_cgroups",),
):
    """Row of `dying_parents`."""

    time_ns: Time
    path: Annotated[str, key("path of the parent, from the root of the memory hierarchy")]
    dying: Annotated[
        int | None,
        gauge(
            "zombies below it; v1 has only their total, so this is an estimate there; "
            "null if not known"
        ),
    ] = None
    kind: Annotated[
        str | None,
        label(
            "kind of memory: `shmem` (tmpfs), `file` (page cache without it), `anon`, "
            "`swap`; null: the row has only their number"
        ),
    ] = None
    held_bytes: Annotated[int | None, gauge("memory of that kind that pins them", "bytes")] = None


class CgroupChurnRow(
    Row,
    table="cgroup_churn",
    help="Cgroups made and removed since the previous row, by parent, pattern of name and maker.",
    sorted_by=("time_ns", "parent"),
    subject=("parent", "pattern", "maker", "maker_pid", "maker_cgroup"),
    observers=("cgroup_churn",),
):
    """Row of `cgroup_churn`."""

    time_ns: Time
    parent: Annotated[str, key("path of the parent")]
    pattern: Annotated[str, key("names below the parent, varying parts replaced by `*`")]
    maker: Annotated[
        str | None, label("comm of the process that made or removed them; null if not known")
    ] = None
    maker_pid: Annotated[int | None, key("process id of the maker", type="int32")] = None
    maker_cgroup: Annotated[
        str | None, label("cgroup that the maker itself is in; null if not known")
    ] = None
    workload: Annotated[str | None, label("comm of the last task attached; null if not known")] = (
        None
    )
    made: Annotated[int, count("cgroups made (mkdir)")]
    removed: Annotated[int, count("cgroups removed (rmdir)")]
    released: Annotated[int, count("cgroups released by the kernel")]
    attached: Annotated[int, count("tasks moved in")]
    unreleased: Annotated[
        int | None, gauge("cgroups removed over 15 s before this time and not released")
    ] = None
    way: Annotated[str | None, label("how it was observed: `tracepoints` or `scan`")] = None


class SoftnetRow(
    Row,
    table="softnet",
    help="Packet work of each core: `/proc/net/softnet_stat` and `/proc/softirqs`.",
    sorted_by=("cpu", "time_ns"),
    subject=("cpu",),
    observers=("softnet",),
):
    """Row of `softnet`."""

    time_ns: Time
    cpu: Annotated[int, key("core", type="int16")]
    processed: Annotated[int | None, counter("packets taken from queues")] = None
    dropped: Annotated[int | None, counter("packets dropped because the backlog was full")] = None
    squeezed: Annotated[int | None, counter("times the budget ended with work left")] = None
    backlog: Annotated[int | None, gauge("waiting packets; null before Linux 5.10")] = None
    net_rx: Annotated[int | None, counter("NET_RX soft interrupts served")] = None
    net_tx: Annotated[int | None, counter("NET_TX soft interrupts served")] = None
    starved_ns: Annotated[
        int | None, counter("time the core was starved, since the recorder started", "ns")
    ] = None


class InterruptRow(
    Row,
    table="interrupts",
    help="Interrupts of network devices by core; a row where the count changed.",
    sorted_by=("irq", "cpu", "time_ns"),
    subject=("irq", "cpu"),
    observers=("softnet",),
):
    """Row of `interrupts`."""

    time_ns: Time
    irq: Annotated[int, key("number of the interrupt", type="int32")]
    cpu: Annotated[int, key("core that served it", type="int16")]
    count: Annotated[int | None, counter("times the interrupt was served since boot")] = None


class NicRow(
    Row,
    table="nics",
    help="Network devices.",
    sorted_by=("nic", "time_ns"),
    subject=("nic",),
    observers=("nics",),
):
    """Row of `nics`."""

    time_ns: Time
    nic: Annotated[str, key("name of the interface")]
    driver: Annotated[str | None, label("driver")] = None
    version: Annotated[str | None, label("version of the driver, as it reports it")] = None
    bus: Annotated[str | None, label("address of the device on its bus")] = None
    up: Annotated[bool | None, gauge("operational")] = None
    carrier: Annotated[bool | None, gauge("has a link")] = None
    carrier_changes: Annotated[int | None, counter("times the link came or went")] = None
    rx_queues: Annotated[int | None, gauge("receive queues")] = None
    tx_queues: Annotated[int | None, gauge("transmit queues")] = None
    tx_timeouts: Annotated[int | None, counter("transmit timeouts of all queues")] = None
    rx_packets: Annotated[int | None, counter("packets received")] = None
    tx_packets: Annotated[int | None, counter("packets sent")] = None
    rx_bytes: Annotated[int | None, counter("bytes received", "bytes")] = None
    tx_bytes: Annotated[int | None, counter("bytes sent", "bytes")] = None
    rx_dropped: Annotated[int | None, counter("packets dropped on receiving")] = None
    tx_errors: Annotated[int | None, counter("errors on sending")] = None


class NicQueueRow(
    Row,
    table="nic_queues",
    help="The interrupt and the cores that serve each queue.",
    sorted_by=("nic", "queue", "time_ns"),
    subject=("nic", "queue", "direction", "irq"),
    observers=("nics",),
):
    """Row of `nic_queues`."""

    time_ns: Time
    nic: Annotated[str, key("name of the interface")]
    queue: Annotated[int, key("number of the queue", type="int32")]
    direction: Annotated[str | None, label("`rx`, `tx` or `rx+tx`")] = None
    irq: Annotated[int | None, key("number of the interrupt", type="int32")] = None
    irq_name: Annotated[str | None, label("name of the interrupt")] = None
    affinity: Annotated[str | None, label("cores that the interrupt may go to, as in `0-5,39`")] = (
        None
    )
    effective: Annotated[str | None, label("cores that the interrupt goes to")] = None
    tx_timeouts: Annotated[int | None, counter("transmit timeouts of this queue")] = None


class NicStatisticRow(
    Row,
    table="nic_statistics",
    help="Statistics of the driver (`ethtool -S`); a row where a value changed.",
    sorted_by=("nic", "name", "time_ns"),
    subject=("nic", "name"),
    observers=("nics",),
):
    """Row of `nic_statistics`."""

    time_ns: Time
    nic: Annotated[str, key("name of the interface")]
    name: Annotated[str, key("name of the statistic, by the driver")]
    value: Annotated[int | None, counter("raw value")] = None


class PressureRow(
    Row,
    table="pressure",
    help="Time lost waiting for a resource: `/proc/pressure`, and per cgroup on v2.",
    sorted_by=("cgroup", "resource", "time_ns"),
    subject=("cgroup", "resource"),
    observers=("pressure", "cgroups"),
):
    """Row of `pressure`."""

    time_ns: Time
    cgroup: Annotated[str, key("path of the cgroup; empty for the node")]
    resource: Annotated[str, key("`cpu`, `memory`, `io` or `irq`")]
    some_us: Annotated[int | None, counter("time in which at least one task waited", "µs")] = None
    full_us: Annotated[int | None, counter("time in which all tasks waited", "µs")] = None


class MemoryRow(
    Row,
    table="memory",
    help="Memory and reclaim of the node: `/proc/meminfo` in bytes, `/proc/vmstat` raw.",
    sorted_by=("name", "time_ns"),
    subject=("name",),
    observers=("memory",),
):
    """Row of `memory`."""

    time_ns: Time
    name: Annotated[str, key("name in the file")]
    value: Annotated[int, gauge("bytes (meminfo) or a counter (vmstat)")]


class CgroupRow(
    Row,
    table="cgroups",
    help="Resource use of each live cgroup.",
    sorted_by=("cgroup", "time_ns"),
    subject=("cgroup",),
    observers=("cgroups",),
):
    """Row of `cgroups`."""

    time_ns: Time
    cgroup: Annotated[str, key("path, as samples have it")]
    usage_us: Annotated[
        int | None, counter("CPU time used by the cgroup and its descendants", "µs")
    ] = None
    user_us: Annotated[int | None, counter("CPU time in user mode", "µs")] = None
    system_us: Annotated[int | None, counter("CPU time in the kernel", "µs")] = None
    periods: Annotated[int | None, counter("periods in which the CPU limit applied")] = None
    throttled: Annotated[int | None, counter("periods in which the cgroup was throttled")] = None
    throttled_us: Annotated[int | None, counter("time the cgroup was throttled", "µs")] = None
    memory_bytes: Annotated[int | None, gauge("memory charged", "bytes")] = None
    memory_limit_bytes: Annotated[
        int | None, gauge("memory limit; null if there is none", "bytes")
    ] = None
    memory_limit_hits: Annotated[
        int | None, counter("times the limit was reached (v1 failcnt, v2 events max)")
    ] = None
    oom_kills: Annotated[int | None, counter("tasks killed by the OOM killer")] = None
    oom_group_kills: Annotated[
        int | None, counter("times that all its tasks were killed at once (v2, Linux 5.19)")
    ] = None
    tasks: Annotated[int | None, gauge("tasks in the cgroup and its descendants")] = None
    frozen: Annotated[
        int | None,
        gauge("1 if its tasks are stopped (v2 `cgroup.events`, v1 `freezer.state`)", type="int16"),
    ] = None


class CgroupNameRow(
    Row,
    table="cgroup_names",
    help="The owner of each cgroup: unit, pod or container.",
    sorted_by=("cgroup", "time_ns"),
    subject=("cgroup",),
    observers=("cgroup_names",),
):
    """Row of `cgroup_names`."""

    time_ns: Time
    cgroup: Annotated[str, key("path, as samples have it")]
    kind: Annotated[str | None, label("`pod`, `container`, `unit`, `slice` or `session`")] = None
    runtime: Annotated[
        str | None, label("`containerd`, `docker`, `cri-o`, `podman`, `ecs`, `systemd`")
    ] = None
    unit: Annotated[str | None, label("systemd unit")] = None
    namespace: Annotated[str | None, label("namespace of the pod")] = None
    pod: Annotated[str | None, label("name of the pod")] = None
    pod_uid: Annotated[str | None, label("uid of the pod")] = None
    container: Annotated[str | None, label("name of the container")] = None
    container_id: Annotated[str | None, label("id of the container")] = None


class UnitRow(
    Row,
    table="units",
    help="systemd units; a row where a unit changed.",
    sorted_by=("unit", "time_ns"),
    subject=("unit",),
    observers=("units",),
):
    """Row of `units`."""

    time_ns: Time
    unit: Annotated[str, key("name of the unit")]
    load: Annotated[str | None, label("LoadState")] = None
    active: Annotated[str | None, label("ActiveState")] = None
    sub: Annotated[str | None, label("SubState")] = None
    result: Annotated[str | None, label("Result")] = None
    restarts: Annotated[int | None, counter("NRestarts: 0 again after a manual start")] = None
    main_pid: Annotated[int | None, key("MainPID; null if none", type="int32")] = None
    exit_kind: Annotated[
        str | None,
        label(
            "how the main process last ended: `exited`, `killed`, `dumped`", formerly="exit_code"
        ),
    ] = None
    exit_status: Annotated[int | None, gauge("exit status or signal of the main process")] = None
    file_state: Annotated[
        str | None, label("UnitFileState: `enabled`, `disabled`, `static`, `masked`, …")
    ] = None
    preset: Annotated[str | None, label("UnitFilePreset")] = None
    vendor: Annotated[
        str | None, label("origin of the unit file: package, vendor or administrator")
    ] = None
    wanted_by: Annotated[
        str | None, label("units that want or require this one, separated by spaces")
    ] = None
    why_not_started: Annotated[
        str | None, label("why an enabled unit does not run; `started` if it was started")
    ] = None
    cgroup: Annotated[str | None, label("path of the cgroup, as samples have it")] = None
    starts: Annotated[int | None, counter("starts seen since boot")] = None
    failures: Annotated[int | None, counter("failed runs seen since boot")] = None
    successes: Annotated[int | None, counter("successful runs seen since boot")] = None


class ContainerRow(
    Row,
    table="containers",
    help="Containers of docker, containerd, podman and pods; a row where one changed.",
    sorted_by=("runtime", "name", "time_ns"),
    subject=("runtime", "id"),
    observers=("containers",),
):
    """Row of `containers`."""

    time_ns: Time
    runtime: Annotated[str, key("container runtime")]
    id: Annotated[str, key("id of the container")]
    name: Annotated[str | None, label("name, stable over ids")] = None
    image: Annotated[str | None, label("image")] = None
    state: Annotated[str | None, label("`created`, `running`, `exited`, `removed`, …")] = None
    pid: Annotated[int | None, key("id of its first process; null if none", type="int32")] = None
    exit_status: Annotated[
        int | None, gauge("exit status of the last run", formerly="exit_code")
    ] = None
    restarts: Annotated[int | None, counter("restarts of this id, by the runtime")] = None
    started_wall_ns: Annotated[
        int | None, gauge("wall time of the last start", "ns since the epoch")
    ] = None
    finished_wall_ns: Annotated[
        int | None, gauge("wall time of the last exit", "ns since the epoch")
    ] = None
    cgroup: Annotated[str | None, label("path of the cgroup, as samples have it")] = None
    cgroup_parent: Annotated[str | None, label("parent of the cgroup")] = None
    namespace: Annotated[str | None, label("namespace of the pod")] = None
    pod: Annotated[str | None, label("name of the pod")] = None


class SourceCostRow(
    Row,
    table="source_costs",
    help="Cost of each observer to the recorder.",
    sorted_by=("source", "time_ns"),
    subject=("source",),
):
    """Row of `source_costs`."""

    time_ns: Time
    source: Annotated[str, key("name of the observer")]
    cpu_ns: Annotated[
        int | None, counter("CPU time of the observer since the recorder started", "ns")
    ] = None
    reads: Annotated[int | None, counter("readings")] = None
    failures: Annotated[int | None, counter("readings that failed")] = None
    interval_ns: Annotated[int | None, gauge("interval between readings", "ns")] = None
    slowest_ns: Annotated[int | None, gauge("longest reading since the previous row", "ns")] = None


class KernelLogRow(
    Row,
    table="kernel_log",
    help="The kernel log as in `/dev/kmsg`, one row per record.",
    sorted_by=("time_ns", "sequence"),
    subject=("sequence",),
    observers=("kernel_log",),
):
    """Row of `kernel_log`."""

    time_ns: Annotated[int, time("time at which the record was logged", "ns")]
    sequence: Annotated[int, key("sequence number of the record, by the kernel")]
    level: Annotated[int, key("0 emergency … 7 debug", type="int16")]
    facility: Annotated[int, key("0 kernel, 1 user, …", type="int16")]
    user: Annotated[bool, key("a user wrote the record, not the kernel")]
    text: Annotated[str, label("the message", type="string")]


NODE_ROWS: tuple[type[Row], ...] = (
    MemoryCgroupsRow,
    DyingParentRow,
    CgroupChurnRow,
    SoftnetRow,
    InterruptRow,
    NicRow,
    NicQueueRow,
    NicStatisticRow,
    PressureRow,
    MemoryRow,
    CgroupRow,
    CgroupNameRow,
    UnitRow,
    ContainerRow,
    SourceCostRow,
    KernelLogRow,
    *WITNESS_ROWS,
)
NODE_TABLES: tuple[Table, ...] = tuple(row.table() for row in NODE_ROWS)
