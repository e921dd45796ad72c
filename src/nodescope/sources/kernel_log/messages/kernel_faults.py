"""Faults of the kernel itself and processes that crash: linux 3.10 to 6.19.

x86 arch/x86/mm/fault.c, arch/x86/kernel/{dumpstack,traps}.c; arm64 arch/arm64/{mm/fault,
kernel/traps}.c; lib/bug.c, kernel/panic.c. An oops is several lines; `continuation` makes one
event of them and adds the task, the core and the function.
"""

from __future__ import annotations

from nodescope.sources.kernel_log.messages.message import MessageRule, rule

_PLACE = (
    r"(?P<function>[\w.$]{1,128})\+0x[0-9a-f]+/0x[0-9a-f]+"
    r"(?: \[(?P<module>[\w-]{1,64})[^\]]{0,64}\])?"
)
_MAPPED = r"(?:,? in (?P<module>[^\n]{1,255}?)\[[0-9a-f,+]+\])?"

_OOPSES = (
    rule(
        "kernel_oops",
        "BUG: unable to handle ",
        r"BUG: (?P<reason>unable to handle (?:kernel (?:NULL pointer dereference|paging request)|"
        r"page fault))",
    ),
    rule(
        "kernel_oops",
        "BUG: kernel NULL pointer",
        r"BUG: (?P<reason>kernel NULL pointer dereference)",
    ),
    rule(  # arm64
        "kernel_oops",
        "Unable to handle kernel ",
        r"(?P<reason>Unable to handle kernel [a-zA-Z ]{1,60}?) at virtual address",
    ),
    rule(
        "kernel_oops",
        "kernel BUG at ",
        r"(?P<reason>kernel BUG) at (?P<about>[^\s:!]{1,200}:\d+)!",
    ),
    rule(
        "kernel_oops",
        "BUG: Bad ",
        r"BUG: (?P<reason>Bad (?:page state|page map|rss-counter state))"
        r"(?: in process (?P<comm>[^\n]{1,64}?)  pfn:)?",
    ),
    rule(
        "kernel_oops",
        "BUG: scheduling while atomic",
        r"BUG: (?P<reason>scheduling while atomic): (?P<comm>[^\n]{1,64})/(?P<pid>\d+)/0x",
    ),
    rule(
        "kernel_oops",
        "BUG: KASAN: ",
        rf"BUG: (?P<reason>KASAN: [\w -]{{1,80}}?) in {_PLACE}",
    ),
    rule(
        "kernel_oops",
        "[#",
        # "Oops: 0002 [#1] SMP", "general protection fault: 0000 [#2]", since 6.12 with "Oops: "
        # before that; arm64 "Internal error: Oops: 0000000096000004 [#1]"
        r"\A(?P<reason>(?:Internal error|Oops|[a-z][a-z ]{2,40})\b[^\n\[]{0,160}?): "
        r"(?:[0-9a-f]{16}|[0-9a-f]{8}|[0-9a-f]{1,4}) \[#\d+\]",
    ),
)

_WARNINGS = (
    rule(
        "kernel_warning",
        "WARNING: CPU: ",
        rf"WARNING: CPU: (?P<cpu>\d+) PID: (?P<pid>\d+) at (?P<reason>\S{{1,200}}:\d+) {_PLACE}",
    ),
    rule("kernel_warning", "WARNING: at ", rf"WARNING: at (?P<reason>\S{{1,200}}:\d+) {_PLACE}"),
    rule(  # 6.19
        "kernel_warning",
        "WARNING: ",
        rf"WARNING: (?P<reason>\S{{1,200}}:\d+) at {_PLACE}, CPU#(?P<cpu>\d+): "
        r"(?P<comm>[^\n]{1,64})/(?P<pid>\d+)",
    ),
    rule(
        "kernel_warning",
        "BUG: sleeping function",
        r"BUG: (?P<reason>sleeping function called from invalid context at \S{1,200}:\d+)",
    ),
    # what else the kernel finds wrong with itself: a bad lock, a stack that ran over
    rule("kernel_warning", "BUG: ", r"\ABUG: (?P<reason>[^\n]{1,200})"),
)

_CRASHES = (
    rule(
        "process_crash",
        "]: segfault at ",
        r"\A(?P<comm>[^\n]{1,64})\[(?P<pid>\d+)\]: (?P<reason>segfault) at (?:[0-9a-f]+|\(null\)) "
        rf"ip (?:[0-9a-f]+|\(null\)) sp [0-9a-f]+(?: error [0-9a-f]+)?{_MAPPED}"
        r"(?: likely on CPU (?P<cpu>\d+) )?",
    ),
    rule(
        "process_crash",
        "traps: ",
        r"traps: (?P<comm>[^\n]{1,64}?)\[(?P<pid>\d+)\] (?:trap )?(?P<reason>[a-z][\w ]{2,40}?) "
        rf"ip:[0-9a-f]+ sp:[0-9a-f]+ error:[0-9a-f]+{_MAPPED}",
    ),
    rule(  # arm64, where show_unhandled_signals is set
        "process_crash",
        "]: unhandled ",
        r"\A(?P<comm>[^\n]{1,64})\[(?P<pid>\d+)\]: unhandled (?:exception: )?"
        r"(?P<reason>[^\n,]{2,80}?)(?: \(\d+\) at 0x[0-9a-f]+)?, (?:ESR|esr|syndrome) 0x[0-9a-f]+"
        rf"{_MAPPED}",
    ),
)

RULES: tuple[MessageRule, ...] = (
    rule(
        "kernel_panic",
        "Kernel panic - not syncing",
        r"Kernel panic - not syncing: (?P<reason>[^\n]{1,300})",
    ),
    *_OOPSES,
    *_WARNINGS,
    *_CRASHES,
)
