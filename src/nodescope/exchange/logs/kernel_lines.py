"""Lines of a kernel log in every form that people have them in.

    [  123.456789] message                         dmesg; seconds since boot
    [  123.456789 <    0.000012>] message          dmesg -d
    [<    0.000012>] message                       dmesg --time-format delta
    [Nov16 03:08] message                          dmesg -H: a minute, then differences
    [  +0.005106] message                          dmesg -H, --time-format reltime
    <4>[  123.456789][   T17] message              dmesg -r, with CONFIG_PRINTK_CALLER
    kern  :warn  : [  123.456789] message          dmesg -x
    [Mon Nov 16 03:08:22 2026] message             dmesg -T; local time, no zone
    2026-11-16T03:08:22,123456+00:00 message       dmesg --time-format iso
    4,1234,123456789,-;message                     /dev/kmsg (Documentation/ABI/testing/dev-kmsg)
    [  123.456789] host kernel: message            journalctl -o short-monotonic
    10.0.0.7: kern: warning: [2026-11-16T03:08:22.123456789Z]: message     talosctl dmesg
    2026-11-16T03:08:22.123+01:00| vcpu-0| I005: Guest: [  1.2] message    vmware.log

What a console puts before a line (colours, carriage returns, a prompt) is passed over.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from nodescope.exchange.logs.wall_stamps import resolve_year
from nodescope.quantities import SECOND_NS
from nodescope.wall_time import MONTHS, match_iso, parse_ctime

Clock = Literal["boot", "wall", "since last"]
FACILITIES = (
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron",
    "authpriv", "ftp", "res0", "res1", "res2", "res3",
    "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
)  # fmt: skip
_CONSOLE = re.compile(r"(?:\x1b\[[0-9;?]{0,16}[A-Za-z]|\r)+")
_PRIORITY = re.compile(r"<(\d{1,4})>")
_DECORATION = re.compile(
    r"([a-z]+\d?) *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: ", re.ASCII
)
_CALLER = r"(?:\[ *(?P<caller>[TC]\d{1,10})\])? ?"
_SINCE_BOOT = re.compile(rf"\[ *(\d{{1,10}})\.(\d{{1,9}})(?: <[^>]{{1,20}}>)?\]{_CALLER}", re.ASCII)
_ON_CONSOLE = re.compile(r"(?<=[\s:#$>\r])\[ *\d{1,10}\.\d{6}\](?: |\[ *[TC]\d)", re.ASCII)
_SINCE_LAST = re.compile(
    rf"\[(?: *\+(\d{{1,10}})\.(\d{{1,9}})|< *(\d{{1,10}})\.(\d{{1,9}})>)\]{_CALLER}", re.ASCII
)
_MINUTE = re.compile(rf"\[([A-Z][a-z]{{2}}) ?(\d{{1,2}}) (\d\d):(\d\d)\]{_CALLER}", re.ASCII)
_BRACKETED = re.compile(r"\[([A-Z][a-z]{2} [A-Z][a-z]{2} [^\]]{1,20})\] ?")
_KMSG = re.compile(
    r"(\d{1,6}),(\d{1,18}),(\d{1,19}),(?:[^;]{0,80}?,caller=([TC]\d{1,10}))?[^;]{0,80};(.*)",
    re.DOTALL | re.ASCII,
)
_MONOTONIC = re.compile(r"(?:[\w.-]{1,253} )?kernel: ", re.ASCII)
_TALOS = re.compile(r"[\w.:-]{1,253}: +([a-z]+\d?): +[a-z]+: \[(\S{20,40})\]: ?", re.ASCII)
_GUEST = re.compile(r"\| [\w-]{1,40}\| [A-Z]\d{3}: Guest: ?", re.ASCII)


class LogLine(NamedTuple):
    """A stamped line; `time_ns` counts on its clock, `since last` from the line before."""

    clock: Clock
    time_ns: int
    zoned: bool
    facility: str
    message: str
    sequence: int | None = None
    dated: bool = True  # a wall time has its year
    caller: str = ""  # the thread or the core that wrote it (CONFIG_PRINTK_CALLER)


def parse_line(text: str, written_ns: int | None = None) -> LogLine | None:
    """Return a line in any of the forms; None if it has no stamp.

    `written_ns` is the file's last change, for times without a year.
    """
    if colour := _CONSOLE.match(text):
        text = text[colour.end() :]
    if match := _KMSG.match(text):
        facility = _facility(int(match[1]) >> 3)
        time_ns, sequence = int(match[3]) * 1000, int(match[2])
        return LogLine("boot", time_ns, True, facility, match[5], sequence, caller=match[4] or "")
    facility = "kern"
    if match := _PRIORITY.match(text):
        facility, text = _facility(int(match[1]) >> 3), text[match.end() :]
    elif (match := _DECORATION.match(text)) and match[1] in FACILITIES:
        facility, text = match[1], text[match.end() :]
    if text.startswith("["):
        return _parse_bracketed(text, facility, written_ns)
    return _parse_wall(text, facility)


def find_line_inside(text: str) -> LogLine | None:
    """Return the kernel's line that a console wrote behind something else, as after `login: `."""
    found = _ON_CONSOLE.search(text)
    return None if found is None else _parse_bracketed(text[found.start() :], "kern", None)


def _parse_bracketed(text: str, facility: str, written_ns: int | None) -> LogLine | None:
    if match := _SINCE_BOOT.match(text):
        message = text[match.end() :]
        if said := _MONOTONIC.match(message):
            message = message[said.end() :]
        time_ns, caller = _nanoseconds(match[1], match[2]), match["caller"] or ""
        return LogLine("boot", time_ns, True, facility, message, caller=caller)
    if match := _SINCE_LAST.match(text):
        seconds, fraction = match[1] or match[3], match[2] or match[4]
        elapsed_ns = _nanoseconds(seconds, fraction)
        message, caller = text[match.end() :], match["caller"] or ""
        return LogLine("since last", elapsed_ns, True, facility, message, caller=caller)
    if match := _MINUTE.match(text):
        clock = int(match[3]), int(match[4]), 0
        moment = resolve_year(MONTHS.get(match[1], 0), int(match[2]), clock, written_ns)
        message = text[match.end() :]
        return (moment and LogLine("wall", moment, False, facility, message, dated=False)) or None
    if match := _BRACKETED.match(text):
        moment = parse_ctime(match[1])
        if moment is not None:
            return LogLine("wall", moment, False, facility, text[match.end() :])
    return None


def _parse_wall(text: str, facility: str) -> LogLine | None:
    stamp = match_iso(text[:40])
    if stamp is not None:
        time_ns, zoned, end = stamp
        # A comma sets dmesg's times apart from those of journals and syslog.
        if text[19:20] == "," and text[end : end + 1] in (" ", ""):
            return LogLine("wall", time_ns, zoned, facility, text[end + 1 :])
        if match := _GUEST.match(text, end):
            message = text[match.end() :]
            if inner := _SINCE_BOOT.match(message):
                message = message[inner.end() :]
            return LogLine("wall", time_ns, zoned, facility, message)
        return None
    if (match := _TALOS.match(text)) and match[1] in FACILITIES:
        moment = match_iso(match[2])
        if moment is not None:
            return LogLine("wall", moment[0], moment[1], match[1], text[match.end() :])
    return None


def _nanoseconds(seconds: str, fraction: str) -> int:
    return int(seconds) * SECOND_NS + int(fraction.ljust(9, "0"))


def _facility(number: int) -> str:
    return FACILITIES[number] if number < len(FACILITIES) else "kern"
