"""Every kind of event, declared once: what it means, and whether it is serious.

Serious events freeze the minutes around them, so that retention spares what a
person will want to look at.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventKind:
    """One kind of event."""

    name: str
    help: str
    serious: bool = False


_KINDS = (
    # the recorder about itself
    EventKind("recorder_started", "the recorder started"),
    EventKind("recorder_stopped", "the recorder ended cleanly"),
    EventKind("source_denied", "a source may not be read"),
    EventKind("source_degraded", "a source tells less than it could"),
    EventKind("rate_lowered", "the recorder sampled less, to keep its budget"),
    EventKind("rate_restored", "sampling less had not helped"),
    EventKind("rate_raised", "the recorder samples more again: its cost allows it"),
    EventKind("source_eased", "a source is asked less often, to keep the budget"),
    EventKind("paused", "recording paused for want of room"),
    EventKind("resumed", "recording went on"),
    EventKind("throttled", "the kernel throttled sampling"),
    EventKind("clock_step", "the wall clock was set"),
    EventKind("cpu_offline", "a core went offline"),
    EventKind("cpu_online", "a core came online"),
    EventKind("frozen", "the minutes around an event were frozen"),
    EventKind("thawed", "what the recorder had frozen by itself was let go, for want of room"),
    EventKind("retention_exceeded", "what is frozen is more than is to be kept"),
    EventKind("import", "a file was imported"),
    # the kernel's log
    EventKind("kernel", "a line of an imported kernel log that has no kind of its own"),
    EventKind("journal", "a line of an imported journal"),
    EventKind("nic_tx_timeout", "a transmit queue timed out", serious=True),
    EventKind("nic_poll_starved", "the driver says its poll was scheduled and not run",
              serious=True),
    EventKind("nic_tx_late", "transmitted packets were not completed in time"),
    EventKind("nic_keepalive_lost", "the device's keep-alive did not come", serious=True),
    EventKind("nic_reset", "the driver resets its device", serious=True),
    EventKind("nic_reset_done", "the reset is over"),
    EventKind("nic_reset_failed", "the reset failed", serious=True),
    EventKind("nic_event_recovered", "the driver recovered lost completions"),
    EventKind("nic_health", "the device's health is compromised", serious=True),
    EventKind("soft_lockup", "a core did not schedule for many seconds", serious=True),
    EventKind("hard_lockup", "a core did not serve interrupts for many seconds", serious=True),
    EventKind("rcu_stall", "a core held up RCU", serious=True),
    EventKind("hung_task", "a task was blocked for minutes", serious=True),
    EventKind("workqueue_hogged", "a work item hogged its core"),
    EventKind("workqueue_lockup", "a pool of work items made no progress", serious=True),
    EventKind("oom_kill", "the kernel killed a task for want of memory", serious=True),
    # the node
    EventKind("core_held", "one core was pegged: in the kernel for three seconds", serious=True),
    EventKind("core_starved", "a core that serves packets made no progress", serious=True),
    # Both thresholds: who makes them is seen while they pile up, which may be weeks before
    # the second one is passed.
    EventKind("zombies_warn", "removed memory cgroups passed the first threshold", serious=True),
    EventKind("zombies_critical", "removed memory cgroups passed the second threshold",
              serious=True),
    EventKind("nic_carrier", "a link came or went"),
    EventKind("nic_stat_jump", "a counter of trouble in the driver rose"),
    EventKind("irq_moved", "an interrupt moved to another core"),
    EventKind("unit_started", "a unit started"),
    EventKind("unit_exit", "a unit's main process ended"),
    EventKind("unit_failed", "a unit failed"),
    EventKind("unit_restart", "systemd restarts a unit"),
    EventKind("unit_loop", "a unit began to loop", serious=True),
    EventKind("unit_hidden_loop", "what a running unit starts fails again and again",
              serious=True),
    EventKind("unit_child_failing", "what a running unit starts still fails again and again"),
    EventKind("unit_logs_ends", "a running unit logs that what it started ended with errors"),
    EventKind("unit_start_failed", "a unit could not be started"),
    EventKind("container_started", "a container started"),
    EventKind("container_exit", "a container ended"),
    EventKind("container_restart", "a container was started again"),
    EventKind("container_loop", "a container began to loop", serious=True),
    EventKind("job_failed", "a job failed", serious=True),
    EventKind("mark", "somebody marked this moment"),
)  # fmt: skip

EVENT_KINDS: dict[str, EventKind] = {kind.name: kind for kind in _KINDS}
