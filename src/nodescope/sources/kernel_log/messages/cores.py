"""Cores, tasks and work items that did not get on: the kernel's own watchdogs.

Read in linux 5.10 to 7.2: kernel/watchdog.c, kernel/rcu/tree_stall.h,
kernel/hung_task.c, kernel/workqueue.c.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

RULES: tuple[MessageRule, ...] = (
    rule(
        "soft_lockup",
        "BUG: soft lockup",
        r"BUG: soft lockup - CPU#(?P<cpu>\d+) stuck for (?P<stuck_s>\d+)s! "
        r"\[(?P<comm>.+):(?P<pid>\d+)\]",
    ),
    rule(
        "hard_lockup",
        "etected hard LOCKUP on cpu",
        r"etected hard LOCKUP on cpu (?P<cpu>\d+)",
    ),
    rule(
        "rcu_stall",
        "self-detected stall on CPU",
        r"INFO: (?P<flavor>rcu\w*) self-detected stall on CPU(?:\s+\{? ?(?P<cpu>\d+)-)?",
    ),
    rule(
        "rcu_stall",
        "stalls on CPUs/tasks",
        r"INFO: (?P<flavor>rcu\w*) detected (?:expedited )?stalls on CPUs/tasks:"
        r"(?:\s+\{ (?:P\d+ )*(?P<cpu>\d+)-)?",
    ),
    rule(
        "rcu_stall",
        " kthread starved for ",
        r"(?P<flavor>rcu\w*) kthread starved for (?P<starved_jiffies>\d+) jiffies!"
        r"(?:.*->cpu=(?P<cpu>\d+))?",
    ),
    rule(
        "hung_task",
        "INFO: task ",
        r"INFO: task (?P<comm>.+):(?P<pid>\d+) (?:is )?blocked\b.{0,60}? for more than "
        r"(?P<blocked_s>\d+) seconds",
    ),
    rule(
        "workqueue_hogged",
        " hogged CPU for >",
        r"workqueue: (?P<function>\S+)(?: \[\w+\])? hogged CPU for >(?P<hogged_us>\d+)us "
        r"(?P<times>\d+) times",
    ),
    rule(
        "workqueue_lockup",
        "BUG: workqueue lockup",
        r"BUG: workqueue lockup - pool(?: cpus=(?P<pool_cpus>\S+))?.*stuck for (?P<stuck_s>\d+)s!",
    ),
)
