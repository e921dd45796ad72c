"""Tasks killed for want of memory: linux 5.10 to 7.2, mm/oom_kill.c.

The kernel says each kill twice, first why and where, then whom; `joining` makes
one of the two.
"""

from __future__ import annotations

from nodescope.sources.kernel_messages.message import Rule, rule

RULES: tuple[Rule, ...] = (
    rule(
        "oom_kill",
        "oom-kill:constraint=",
        # Atomic, so that a hostile line costs no more than an honest one.
        r"oom-kill:constraint=(?P<constraint>\w+),(?>.*?,cpuset=)(?>.*?,mems_allowed=)[^a-z]*"
        r"(?:oom_memcg=(?P<memcg>(?>.*?(?=,task_memcg=)))|global_oom),"
        r"task_memcg=(?P<task_memcg>(?>.*?(?=,task=))),"
        r"task=(?P<comm>.*),pid=(?P<pid>\d+),uid=(?P<uid>\d+)",
    ),
    rule(
        "oom_kill",
        "emory: Killed process ",
        r"Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<comm>.*)\)"
        r" total-vm:(?P<virtual_kb>\d+)kB, anon-rss:(?P<anonymous_kb>\d+)kB",
        constraint="CONSTRAINT_MEMCG",
    ),
    rule(
        "oom_kill",
        ": Killed process ",
        r"Out of memory(?: \(oom_kill_allocating_task\))?: Killed process (?P<pid>\d+) "
        r"\((?P<comm>.*)\) total-vm:(?P<virtual_kb>\d+)kB, anon-rss:(?P<anonymous_kb>\d+)kB",
    ),
)
