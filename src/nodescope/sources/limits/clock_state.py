"""Whether the kernel considers its clock synchronised: adjtimex(2), asked without a change.

Python has no such call. The kernel gives up after 16 s of possible error
(`NTP_PHASE_LIMIT`), about nine hours after the last correction; a clock that nobody ever
corrected is unsynchronised from the start.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass

from nodescope.errors import SourceError

_UNSYNCHRONISED = 0x40  # STA_UNSYNC
_ROOM = 256  # struct timex has 208 bytes on 64-bit machines


class _Timex(ctypes.Structure):
    """The head of `struct timex` (include/uapi/linux/timex.h)."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * _ROOM),
    )


@dataclass(frozen=True, slots=True)
class ClockState:
    """What the kernel knows of its clock's error."""

    synchronised: bool
    maximum_error_us: int


_libc = ctypes.CDLL(None, use_errno=True)


def read_clock_state() -> ClockState:
    """Return the state of this machine's clock."""
    asked = _Timex(modes=0)
    if _libc.adjtimex(ctypes.byref(asked)) < 0:
        raise SourceError("adjtimex", os.strerror(ctypes.get_errno()))
    return ClockState(not asked.status & _UNSYNCHRONISED, int(asked.maxerror))
