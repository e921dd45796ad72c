"""What the lines after a message add to it: whom the OOM killer took, which core held up RCU."""

from __future__ import annotations

import re
from dataclasses import replace

from nodescope.sources.kernel_messages.classify import classify
from nodescope.sources.kernel_messages.message import Message

# "rcu: \t3-....: (20999 ticks this GP) idle=…"; before 4.20 without "rcu: "
_STALLED = re.compile(r"(?:rcu: )?\s*(\d+)-[^\s:]{2,6}: \(", re.ASCII)


def join(before: Message, text: str) -> Message | None:
    """`before` with what `text` adds; None if it does not go on with it."""
    if before.kind == "oom_kill" and "Killed process" in text:
        killed = classify(text)
        if killed is None or killed.details.get("pid") != before.details.get("pid"):
            return None
        return replace(before, details={**killed.details, **before.details})
    if before.kind == "rcu_stall" and before.cpu is None and (match := _STALLED.match(text)):
        return replace(before, cpu=int(match[1]))
    return None
