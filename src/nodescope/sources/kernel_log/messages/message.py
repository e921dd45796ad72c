"""A classified line, and the rule that reads it.

A rule's pattern names what it finds. `driver`, `device`, `interface`, `queue`
and `cpu` become fields of the message, `about` its subject, all else its details: of the
type that the kind declares, `…_us` as `…_ms` and `…_kb` as `…_bytes`, so that versions of
one message compare.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from nodescope.records.details import fields_of
from nodescope.records.event_kinds import EVENT_KINDS

Detail = int | str | bool

_FIELDS = frozenset({"driver", "device", "interface", "queue", "cpu", "about"})
# Kinds that happen to a task; the core is where it ran.
_OF_TASKS = frozenset(
    {"kernel_oops", "kernel_panic", "kernel_warning", "process_crash", "page_alloc_failed"}
)
_OF_MEMORY = frozenset({"memory_poisoned"})  # happens to a page; the task is its victim
_DRIVER = re.compile(r"[A-Za-z][\w.+-]*", re.ASCII)
_INTERFACE = re.compile(r"[^\s:/]{1,15}")
_STATES = re.compile(r"(?: \([^()]*\))+$")  # (uninitialized), (unnamed net_device)
_SLOT = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}")
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
    about: str | None = None  # its subject, where none of these is
    announces: bool = False  # the line adds to an event that a later line makes

    @property
    def subject(self) -> str:
        """Return the thing the event happened to."""
        if self.interface or self.device or self.driver:
            return self.interface or self.device or self.driver or ""
        if self.about and self.kind in _OF_MEMORY:
            return self.about
        task = str(self.details.get("comm", ""))
        if self.cpu is not None and not (task and self.kind in _OF_TASKS):
            return f"cpu{self.cpu}"
        return task or self.about or str(self.details.get("function", "kernel"))


class Speaker(NamedTuple):
    """Who says it, by the prefix of the line."""

    driver: str | None = None
    device: str | None = None
    interface: str | None = None


@dataclass(frozen=True, slots=True)
class MessageRule:
    """One format: lines that hold `needle` and match `pattern` are of `kind`.

    Most rules never meet a line with their needle: their expressions are compiled when one does.
    """

    kind: str
    needle: str
    expression: str
    constants: Mapping[str, Detail] = field(default_factory=dict)
    drivers: frozenset[str] = frozenset()  # where the words are not telling enough: who says them
    about: str = ""  # the subject: words with `{name}` for what the pattern finds
    announces: bool = False

    @property
    def pattern(self) -> re.Pattern[str]:
        """Return the compiled expression."""
        return _compile(self.expression)

    @property
    def types(self) -> Mapping[str, str]:
        """Return the types of the details; an error if the kind does not declare one of them."""
        return _types(self.kind, self.expression, frozenset(self.constants))


def rule(
    kind: str,
    needle: str,
    pattern: str = "",
    *,
    drivers: str = "",
    about: str = "",
    announces: bool = False,
    **constants: Detail,
) -> MessageRule:
    """Return a rule; without a pattern the needle itself is one.

    A search for `needle` is the cheapest if it begins with a letter that is rare in a log: a
    capital, a bracket, a colon.
    """
    return MessageRule(
        kind,
        needle,
        pattern or re.escape(needle),
        constants,
        frozenset(drivers.split()),
        about,
        announces,
    )


@cache
def _compile(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.DOTALL | re.ASCII)


@cache
def _types(kind: str, expression: str, constants: frozenset[str]) -> Mapping[str, str]:
    names = {*_compile(expression).groupindex, *constants} - _FIELDS
    declared = {each.key: each.type for each in fields_of(EVENT_KINDS[kind].details)}
    return {name: declared[_stored_name(name)] for name in names}


def _stored_name(name: str) -> str:
    """Return the name of a detail, in the unit that it is stored in."""
    if name.endswith("_us"):
        return f"{name[:-3]}_ms"
    return f"{name[:-3]}_bytes" if name.endswith("_kb") else name


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
    about = rule.about.format_map(found) if rule.about else found.pop("about", None)
    return KernelMessage(
        rule.kind,
        driver=found.pop("driver", speaker.driver),
        device=_address(found.pop("device", speaker.device)),
        interface=found.pop("interface", speaker.interface),
        queue=_index(found.pop("queue", None)),
        cpu=_index(found.pop("cpu", None)),
        details={
            **rule.constants,
            **{_stored_name(name): _detail(name, text, rule) for name, text in found.items()},
        },
        about=about,
        announces=rule.announces,
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


def _address(device: str | None) -> str | None:
    """Return a device; its first function where a driver leaves out the last part of an address."""
    return f"{device.lower()}.0" if device and _SLOT.fullmatch(device) else device


def _index(text: str | None) -> int | None:
    """A queue or core; drivers write -1 for none."""
    number = -1 if text is None else int(text)
    return number if 0 <= number < _MOST_CORES else None


def _detail(name: str, text: str, rule: MessageRule) -> Detail:
    declared = rule.types[name]
    if declared == "text":
        return text
    if declared == "true or false":
        return text != "0"
    if name.endswith("_us"):
        return int(text) // 1000
    return int(text) * 1024 if name.endswith("_kb") else int(text)
