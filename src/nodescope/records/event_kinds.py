"""Every kind of event, declared once: its meaning, its details, and how it is treated.

Serious events freeze the minutes around them, so that retention keeps what a
person will want to look at. Loud ones are also reported on the recorder's standard error.
"""

from __future__ import annotations

from nodescope.records.event_details import (
    CarrierDetails,
    ContainerDetails,
    ContainerExitDetails,
    ContainerLoopDetails,
    ContainerStartDetails,
    CounterDetails,
    FixStepDetails,
    FoldingDetails,
    FrozenDetails,
    HungTaskDetails,
    ImportDetails,
    JobDetails,
    MarkDetails,
    MovedInterruptDetails,
    NicDetails,
    NicKeepaliveDetails,
    NicRecoveryDetails,
    NicResetDetails,
    NicTransmitDetails,
    OomKillDetails,
    PeggedCoreDetails,
    RcuStallDetails,
    SoftLockupDetails,
    StarvedCoreDetails,
    UnitChildDetails,
    UnitLinesDetails,
    UnitRunDetails,
    WorkItemDetails,
    WorkPoolDetails,
    ZombieDetails,
)
from nodescope.records.event_kind import EventKind, Lag
from nodescope.records.trouble_kinds import TROUBLE_KINDS

_DRIVER = Lag(3, "the driver checks once a second, and a free core serves its queue")
_RESET = Lag(5, "a reset comes within two seconds of what the driver saw")
_LATER = Lag(15, "the driver would have given up sooner")
_WATCHDOG = Lag(3, "the kernel reports it while it lasts")
_PACKETS = Lag(3, "packets are served as soon as the core is free")
_JOB = Lag(20, "a job gives up sooner")

_KINDS = (
    # the recorder about itself
    EventKind("recorder_started", "the recorder started"),
    EventKind("recorder_stopped", "the recorder ended cleanly"),
    EventKind("source_denied", "a source cannot be read: permission denied", loud=True),
    EventKind("source_degraded", "a source reports less than it could"),
    EventKind("rate_lowered", "the sampling rate was lowered, to keep the budget", loud=True),
    EventKind("rate_restored", "the sampling rate was restored: lowering did not help", loud=True),
    EventKind("rate_raised", "the sampling rate was raised again: the cost allows it", loud=True),
    EventKind("stacks_folded", "functions were left out of rare stacks, to keep the budget",
              FoldingDetails, loud=True),
    EventKind("stacks_whole", "all stacks are recorded whole again"),
    EventKind("folding_tightened", "more stacks are folded, to keep the budget", loud=True),
    EventKind("folding_relaxed", "fewer stacks are folded: the cost allows it", loud=True),
    EventKind("source_eased", "a source is read less often, to keep the budget", loud=True),
    EventKind("paused", "recording paused: no room on disk", loud=True),
    EventKind("resumed", "recording continued", loud=True),
    EventKind("throttled", "the kernel throttled sampling"),
    EventKind("clock_step", "the wall clock was set", loud=True),
    EventKind("cpu_offline", "a core went offline", loud=True),
    EventKind("cpu_online", "a core came online"),
    EventKind("frozen", "the minutes around an event were frozen", FrozenDetails),
    EventKind("thawed", "a range that the recorder had frozen was released: no room"),
    EventKind("retention_exceeded", "frozen ranges exceed the size limit", loud=True),
    EventKind("import", "a file was imported", ImportDetails),
    # the kernel's log
    EventKind("kernel", "a line of an imported kernel log that has no kind of its own"),
    EventKind("journal", "a line of an imported journal"),
    EventKind("nic_tx_timeout", "a transmit queue timed out",
              NicTransmitDetails, serious=True, rank=40, lag=_DRIVER, way="core"),
    EventKind("nic_poll_starved", "the driver reports that its poll was scheduled and did not run",
              NicDetails, serious=True, rank=110, lag=_DRIVER, way="core"),
    EventKind("nic_tx_late", "transmitted packets were not completed in time", NicTransmitDetails),
    EventKind("nic_keepalive_lost", "the device's keep-alive is missing",
              NicKeepaliveDetails, serious=True, rank=50, lag=_DRIVER, way="core"),
    EventKind("nic_reset", "the driver resets its device",
              NicResetDetails, serious=True, rank=20, lag=_RESET, way="core"),
    EventKind("nic_reset_done", "the reset is over", NicResetDetails),
    EventKind("nic_reset_failed", "the reset failed",
              NicResetDetails, serious=True, rank=30, lag=_LATER, way="core"),
    EventKind("nic_event_recovered", "the driver recovered lost completions", NicRecoveryDetails),
    EventKind("nic_health", "the device's health is compromised",
              NicDetails, serious=True, rank=60, way="device"),
    EventKind("soft_lockup", "a core did not schedule for many seconds",
              SoftLockupDetails, serious=True, rank=80, lag=_WATCHDOG, way="core"),
    EventKind("hard_lockup", "a core did not serve interrupts for many seconds",
              CounterDetails, serious=True, rank=70, lag=_WATCHDOG, way="core"),
    EventKind("rcu_stall", "a core stalled RCU",
              RcuStallDetails, serious=True, rank=90, lag=_WATCHDOG, way="core"),
    EventKind("hung_task", "a task was blocked for minutes",
              HungTaskDetails, serious=True, rank=100, lag=_WATCHDOG, way="task"),
    EventKind("workqueue_hogged", "a work item hogged its core", WorkItemDetails),
    EventKind("workqueue_lockup", "a pool of work items made no progress",
              WorkPoolDetails, serious=True, rank=95, lag=_WATCHDOG, way="core"),
    EventKind("oom_kill", "the OOM killer killed a task",
              OomKillDetails, serious=True, rank=32, way="cgroup"),
    # the node
    EventKind("core_held", "one core was pegged: in the kernel for three seconds",
              PeggedCoreDetails, serious=True, rank=130, way="core"),
    EventKind("core_starved", "a core that serves packets made no progress",
              StarvedCoreDetails, serious=True, rank=120, lag=_PACKETS, way="core"),
    # Both thresholds: who makes them is seen while they pile up, which may be weeks before
    # the second one is passed.
    EventKind("zombies_warn", "zombie memory cgroups passed the warning threshold",
              ZombieDetails, serious=True, loud=True, condition=True),
    EventKind("zombies_critical", "zombie memory cgroups passed the critical threshold",
              ZombieDetails, serious=True, loud=True, condition=True),
    EventKind("nic_carrier", "a link came or went", CarrierDetails),
    EventKind("nic_stat_jump", "an error or allowance counter of the driver rose", NicDetails),
    EventKind("irq_moved", "an interrupt moved to another core", MovedInterruptDetails),
    EventKind("unit_started", "a unit started", UnitRunDetails),
    EventKind("unit_exit", "a unit's main process ended", UnitRunDetails),
    EventKind("unit_failed", "a unit failed", UnitRunDetails),
    EventKind("unit_restart", "systemd restarts a unit", UnitRunDetails),
    EventKind("unit_loop", "a unit began to loop",
              UnitRunDetails, serious=True, loud=True, condition=True),
    EventKind("unit_hidden_loop", "a child of a running unit fails again and again",
              UnitChildDetails, serious=True, loud=True, condition=True),
    EventKind("unit_child_failing", "a child of a running unit still fails again and again",
              UnitChildDetails),
    EventKind("unit_logs_ends", "a running unit logs exits with errors",
              UnitLinesDetails),
    EventKind("unit_start_failed", "a unit could not be started", UnitRunDetails),
    EventKind("container_started", "a container started", ContainerStartDetails),
    EventKind("container_exit", "a container ended", ContainerExitDetails),
    EventKind("container_restart", "a container was started again", ContainerDetails),
    EventKind("container_loop", "a container began to loop",
              ContainerLoopDetails, serious=True, loud=True, condition=True),
    EventKind("job_failed", "a job failed",
              JobDetails, serious=True, rank=10, lag=_JOB, way="core"),
    EventKind("mark", "somebody marked this moment", MarkDetails),
    EventKind("fix_step", "`nodescope fix` took a step of a plan, or took one back",
              FixStepDetails),
    *TROUBLE_KINDS,
)  # fmt: skip

EVENT_KINDS: dict[str, EventKind] = {kind.name: kind for kind in _KINDS}
SYMPTOM_RANKS: dict[str, int] = {kind.name: kind.rank for kind in _KINDS if kind.rank is not None}
