"""A classified line, and the rule that reads it.

A rule's pattern names what it finds. `driver`, `device`, `interface`, `queue`
and `cpu` become fields of the message, all else its details: numbers as integers,
`…_us` as `…_ms` and `…_kb` as `…_bytes`, so that versions of one message compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

Detail = int | str | bool

_FLAGS = frozenset({"poll_scheduled"})
_TEXTS = frozenset(
    {"comm", "flavor", "function", "constraint", "memcg", "task_memcg", "version", "pool_cpus"}
)
_DRIVER = re.compile(r"[A-Za-z][\w.+-]*", re.ASCII)
_INTERFACE = re.compile(r"[^\s:/]{1,15}")
_STATES = re.compile(r"(?: \([^()]*\))+$")  # (uninitialized), (unnamed net_device)
_MOST_CORES = 1 << 15


@dataclass(frozen=True, slots=True)
class KernelMessage:
    """The meaning of a line: `kind` is one of `records.EVENT_KINDS`."""

    kind: str
    driver: str | None = None
    device: str | None = None  # its address on its bus
    interface: str | None = None
    queue: int | None = None
    cpu: int | None = None  # the core it is about, never the one that happened to say it
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def subject(self) -> str:
        """Return the thing the event happened to."""
        if self.interface or self.device or self.driver:
            return self.interface or self.device or self.driver or ""
        if self.cpu is not None:
            return f"cpu{self.cpu}"
        return str(self.details.get("comm", self.details.get("function", "kernel")))


class Speaker(NamedTuple):
    """Who says it, by the prefix of the line."""

    driver: str | None = None
    device: str | None = None
    interface: str | None = None


@dataclass(frozen=True, slots=True)
class MessageRule:
    """One format: lines that hold `needle` and match `pattern` are of `kind`."""

    kind: str
    needle: str
    pattern: re.Pattern[str]
    constants: Mapping[str, Detail] = field(default_factory=dict)
    drivers: frozenset[str] = frozenset()  # where the words are not telling enough: who says them


def rule(
    kind: str, needle: str, pattern: str = "", *, drivers: str = "", **constants: Detail
) -> MessageRule:
    """A rule; without a pattern the needle itself is one."""
    compiled = re.compile(pattern or re.escape(needle), re.DOTALL | re.ASCII)
    return MessageRule(kind, needle, compiled, constants, frozenset(drivers.split()))


def read_by(rule: MessageRule, text: str) -> KernelMessage | None:
    """Read `text` by that rule; None if it does not have the rule's format."""
    match = rule.pattern.search(text)
    if match is None:
        return None
    networks = rule.kind.startswith("nic_")
    speaker = parse_speaker(text[: match.start()]) if networks else Speaker()
    if rule.drivers and speaker.driver not in rule.drivers:
        return None
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    return KernelMessage(
        rule.kind,
        driver=found.pop("driver", speaker.driver),
        device=found.pop("device", speaker.device),
        interface=found.pop("interface", speaker.interface),
        queue=_index(found.pop("queue", None)),
        cpu=_index(found.pop("cpu", None)),
        details={**rule.constants, **dict(map(_detail, found.items()))},
    )


def parse_speaker(prefix: str) -> Speaker:
    """`driver device interface (state): `, with or without any of them.

    `netdev_printk` names all three, `dev_printk` the first two; a driver may put
    words of its own after them. An interface without a parent stands alone.
    """
    parts = [_STATES.sub("", part) for part in prefix.rstrip().removesuffix(":").split(": ")]
    for part in reversed(parts):
        words = part.split()
        if len(words) not in (2, 3) or not _DRIVER.fullmatch(words[0]):
            continue
        if len(words) == 2 and words[0] == "net":  # a device without a driver of its own
            return Speaker(interface=words[1])
        if any(letter.isdigit() for letter in words[1]):
            return Speaker(*words)
    if len(parts) == 1 and _INTERFACE.fullmatch(parts[0]):
        return Speaker(interface=parts[0])
    return Speaker()


def _index(text: str | None) -> int | None:
    """A queue or core; drivers write -1 for none."""
    number = -1 if text is None else int(text)
    return number if 0 <= number < _MOST_CORES else None


def _detail(item: tuple[str, str]) -> tuple[str, Detail]:
    name, text = item
    if name in _TEXTS:
        return name, text
    if name in _FLAGS:
        return name, text != "0"
    if name.endswith("_us"):
        return f"{name[:-3]}_ms", int(text) // 1000
    if name.endswith("_kb"):
        return f"{name[:-3]}_bytes", int(text) * 1024
    return name, int(text)
