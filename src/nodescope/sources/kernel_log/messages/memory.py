"""Memory that could not be had, and tasks killed for want of it: linux 3.10 to 7.2, mm/.

The kernel reports each kill twice, first why and where, then whom; `continuation` makes one of
the two. Lines before them say who asked for memory, and how much the cgroup had. Before 5.1
(bbbe48029720) it first names the task it chose, and then the one it killed, which may be a child
of that; red hat's 3.10 puts the user between. Where and why in one line came with 5.0
(ef8444ea01d7).
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

_KILLS = (
    rule(
        "oom_kill",
        " invoked oom-killer: ",
        r"\A(?P<asked_by>[^\n]{1,64}) invoked oom-killer: ",
        announces=True,
    ),
    rule(  # up to 4.19
        "oom_kill",
        " killed as a result of limit of ",
        r"\ATask in (?P<task_memcg>(?>.*?(?= killed as a ))) killed as a result of limit of "
        r"(?P<memcg>[^\n]+)",
        announces=True,
        constraint="CONSTRAINT_MEMCG",
    ),
    rule(
        "oom_kill",
        "memory: usage ",
        r"\Amemory: usage (?P<usage_kb>\d{1,15})kB, limit (?P<limit_kb>\d{1,15})kB",
        announces=True,
    ),
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

_FAILURES = (
    rule(
        "page_alloc_failed",
        ": page allocation failure",
        r"\A(?P<comm>[^\n]{1,64}): (?P<reason>page allocation failure): order:(?P<order>\d+)",
    ),
    rule(
        "page_alloc_failed",
        "SLUB: Unable to allocate ",
        r"SLUB: (?P<reason>Unable to allocate memory on (?:node|CPU) -?\d+)",
    ),
    rule(
        "page_alloc_failed",
        "vmalloc",
        r"\A(?:(?P<comm>[^\n]{1,64}): )?(?P<reason>vmalloc(?: error: size|: allocation failure))",
    ),
    rule(
        "page_alloc_failed",
        "not enough memory for the allocation",
        r"pid: (?P<pid>\d+), comm: (?P<comm>[^\n]{1,64}), bytes: \d+ "
        r"(?P<reason>not enough memory for the allocation)",
    ),
    rule(
        "page_alloc_failed",
        "Out of memory and no killable",
        r"(?P<reason>Out of memory and no killable processes)",
    ),
    rule(
        "memory_poisoned",
        "due to hardware memory corruption",
        r"(?:MCE|Memory failure:) (?P<about>0x[0-9a-f]+): (?:Killing|Sending SIGBUS to) "
        r"(?P<comm>[^\n]{1,64}):(?P<pid>\d+) (?P<reason>due to hardware memory corruption)",
    ),
    rule(
        "memory_poisoned",
        ": recovery action for ",
        r"Memory failure: (?P<about>0x[0-9a-f]+): (?P<reason>recovery action for [^\n]{1,120})",
    ),
)

RULES: tuple[MessageRule, ...] = (*_KILLS, *_FAILURES)
