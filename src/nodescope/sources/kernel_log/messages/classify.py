"""From a line to what it says: one pass of substring checks, then one pattern."""

from __future__ import annotations

from nodescope.sources.kernel_log.messages import cores, ena, memory, network
from nodescope.sources.kernel_log.messages.message import KernelMessage, MessageRule, read_by

RULES: tuple[MessageRule, ...] = (*network.RULES, *ena.RULES, *cores.RULES, *memory.RULES)

_BY_NEEDLE: dict[str, list[MessageRule]] = {}
for _rule in RULES:
    _BY_NEEDLE.setdefault(_rule.needle, []).append(_rule)
_LONGEST = 2048  # the kernel cuts its own lines at half of that
_NEEDLES = tuple(_BY_NEEDLE.items())


def classify(text: str) -> KernelMessage | None:
    """Return the meaning of a kernel log line; None for routine lines."""
    for needle, rules in _NEEDLES:
        if needle in text:
            for each in rules:
                message = read_by(each, text[:_LONGEST])
                if message is not None:
                    return message
    return None
