"""The details that following lines add to a message: the OOM victim, the core that stalled RCU."""

from __future__ import annotations

import re
from dataclasses import replace

from nodescope.sources.kernel_log.messages.classify import classify
from nodescope.sources.kernel_log.messages.message import KernelMessage

# "rcu: \t3-....: (20999 ticks this GP) idle=…"; before 4.20 without "rcu: "
_STALLED = re.compile(r"(?:rcu: )?\s*(\d+)-[^\s:]{2,6}: \(", re.ASCII)


def join(before: KernelMessage, text: str) -> KernelMessage | None:
    """`before` with what `text` adds; None if it does not go on with it."""
    if before.kind == "oom_kill" and ("Killed process" in text or "Kill process" in text):
        return _killed(before, classify(text))
    if before.kind == "rcu_stall" and before.cpu is None and (match := _STALLED.match(text)):
        return replace(before, cpu=int(match[1]))
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
