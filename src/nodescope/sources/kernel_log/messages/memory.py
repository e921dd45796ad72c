"""Tasks killed for want of memory: linux 3.10 to 7.2, mm/oom_kill.c.

The kernel says each kill twice, first why and where, then whom; `joining` makes
one of the two. Before 5.1 (bbbe48029720) it first names the task it chose, and then the
one it killed, which may be a child of that; red hat's 3.10 puts the user between. Where
and why in one line came with 5.0 (ef8444ea01d7).
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

RULES: tuple[MessageRule, ...] = (
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
        "emory: Kill process ",
        r"Memory cgroup out of memory: Kill process (?P<pid>\d+) \((?P<comm>.*)\)"
        r" score (?P<score>\d+)",
        constraint="CONSTRAINT_MEMCG",
    ),
    rule(
        "oom_kill",
        ": Kill process ",
        r"Out of memory(?: \(oom_kill_allocating_task\))?: Kill process (?P<pid>\d+) "
        r"\((?P<comm>.*)\) score (?P<score>\d+)",
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
    rule(
        "oom_kill",
        "Killed process ",  # up to 5.0
        r"Killed process (?P<pid>\d+) \((?P<comm>.*)\)(?:, UID (?P<uid>\d+),)?"
        r" total-vm:(?P<virtual_kb>\d+)kB, anon-rss:(?P<anonymous_kb>\d+)kB",
    ),
)
