"""The details that other lines of the kernel add to a message.

Lines after it: the OOM victim, the core that stalled RCU, who holds the lock of a hung task,
the task and the function of an oops. Lines before it, which announce it: who asked for memory,
and how much the cgroup had.
"""

from __future__ import annotations

import re
from dataclasses import replace

from nodescope.sources.kernel_log.messages.classify import classify
from nodescope.sources.kernel_log.messages.message import KernelMessage

# "rcu: \t3-....: (20999 ticks this GP) idle=…"; before 4.20 without "rcu: "
_STALLED = re.compile(r"(?:rcu: )?\s*(\d+)-[^\s:]{2,6}: \(", re.ASCII)
# 6.18, after the stack of the task
_BLOCKER = re.compile(
    r"INFO: task .{1,64}?:(?P<pid>\d+)(?: <\w+>)? (?:is )?blocked on an? (?P<lock>[\w-]{1,20})"
    r"(?: likely (?:owned|last held) by task (?P<holder>.{1,64}):(?P<holder_pid>\d+))?",
    re.ASCII,
)
RUNS_ON = re.compile(
    r"\ACPU: (?P<cpu>\d{1,5}) (?:UID: \d+ )?PID: (?P<pid>\d{1,10}) Comm: (?P<comm>.{1,64}?) "
    r"(?:[Kk]dump: loaded )?(?:Not tainted|Tainted: )",
    re.ASCII,
)
STANDS_IN = re.compile(  # x86-64, 3.10's form of it, arm64
    r"\A(?:RIP: 0010:(?:\[<[0-9a-f]+>\]  ?\[<[0-9a-f]+>\] )?|pc : )"
    r"(?P<function>[\w.$]{1,128})\+0x[0-9a-f]+/0x[0-9a-f]+"
    r"(?: \[(?P<module>[\w-]{1,64})[^\]]{0,64}\])?",
    re.ASCII,
)
_AMD = re.compile(
    r"\[Hardware Error\]: CPU:(?P<cpu>\d{1,5}) \([^)]{1,40}\) MC(?P<bank>\d+)_STATUS\[[^\]]{0,80}\]"
    r": 0x(?P<status>[0-9a-f]+)",
    re.ASCII,
)
_BEYOND = re.compile(r"\A(?P<device>\S{1,64}): rw=\d+,", re.ASCII)
_SWAPPED = re.compile(r"\[2/2\] qid: (?P<cpu>\d+), napi CPU: (?P<queue>\d+)", re.ASCII)  # see `ena`
_MOST_CORES = 1 << 15


def complete(announced: KernelMessage, message: KernelMessage) -> KernelMessage:
    """Return a message with what an earlier line announced of it."""
    return replace(
        message,
        device=message.device or announced.device,
        details={**announced.details, **message.details},
    )


def join(before: KernelMessage, text: str) -> KernelMessage | None:
    """Return `before` with what `text` adds; None if it does not go on with it."""
    match before.kind:
        case "oom_kill":
            return _join_kill(before, text)
        case "rcu_stall" if before.cpu is None and (found := _STALLED.match(text)):
            return _on_core(before, int(found[1]))
        case "hung_task":
            return _join_blocker(before, text)
        case "kernel_oops" | "kernel_warning":
            return _join_fault(before, text)
        case "mce" | "mce_corrected" if before.cpu is None and (found := _AMD.search(text)):
            details = {"bank": int(found["bank"]), "status": found["status"]}
            return _on_core(before, int(found["cpu"]), **details)
        case "disk_io_error" if before.device is None and (found := _BEYOND.match(text)):
            return replace(before, device=found["device"])
        case "gpu_lost" if "fallen off the bus" in text and "Xid" not in text:
            return before
        case "nic_tx_timeout" if "lost" in before.details and (found := _SWAPPED.search(text)):
            queue = int(found["queue"])
            if before.queue in (None, queue):
                return replace(_on_core(before, int(found["cpu"])), queue=queue)
    return None


def _on_core(before: KernelMessage, cpu: int, **details: int | str) -> KernelMessage:
    core = cpu if cpu < _MOST_CORES else None
    return replace(before, cpu=core, details={**before.details, **details})


def _join_kill(before: KernelMessage, text: str) -> KernelMessage | None:
    if "Killed process" in text or "Kill process" in text:
        return _killed(before, classify(text))
    if text.startswith("Tasks in ") and text.endswith("due to memory.oom.group set"):
        return replace(before, details={**before.details, "whole_group": True})
    return None


def _killed(before: KernelMessage, after: KernelMessage | None) -> KernelMessage | None:
    """Return the earlier OOM message completed by its victim."""
    if after is None:
        return None
    # Before 5.1 the one that was chosen is announced with its score, and a child may be taken.
    if "score" in before.details and "virtual_bytes" not in before.details:
        if "virtual_bytes" in after.details:
            return replace(before, details={**before.details, **after.details})
        return None  # another one is announced
    if after.details.get("pid") != before.details.get("pid"):
        return None
    return replace(before, details={**after.details, **before.details})


def _join_blocker(before: KernelMessage, text: str) -> KernelMessage | None:
    found = _BLOCKER.match(text)
    if found is None or int(found["pid"]) != before.details.get("pid") or " for more than " in text:
        return None
    details = {**before.details, "waits_for": found["lock"]}
    if found["holder"]:
        details |= {"holder": found["holder"], "holder_pid": int(found["holder_pid"])}
    return replace(before, details=details)


def _join_fault(before: KernelMessage, text: str) -> KernelMessage | None:
    """Return a fault with the task, the core and the function that its next lines name."""
    details = dict(before.details)
    cpu = before.cpu
    if "comm" not in details and (found := RUNS_ON.match(text)):
        details |= {"comm": found["comm"], "pid": int(found["pid"])}
        cpu = int(found["cpu"]) if int(found["cpu"]) < _MOST_CORES else cpu
    elif "function" not in details and (found := STANDS_IN.match(text)):
        details |= {name: value for name, value in found.groupdict().items() if value}
    elif before.kind != "kernel_oops" or "[#" not in text or text.startswith("["):
        return None  # else "Oops: 0002 [#1] SMP" goes on with "BUG: unable to handle …"
    return replace(before, cpu=cpu, details=details)
