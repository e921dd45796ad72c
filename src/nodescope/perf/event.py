"""Opening perf events: the part of `include/uapi/linux/perf_event.h` we use.

`open_sampler` asks for everything the recorder wants and walks down a ladder
of features when the kernel answers EINVAL (it does not know a bit) or EACCES
(it does not let us): features are detected, kernel versions never compared.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from dataclasses import dataclass, replace

from nodescope.errors import SourceAbsent, SourceDenied, SourceError

_SYSCALL_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}

TYPE_HARDWARE, TYPE_SOFTWARE, TYPE_TRACEPOINT = 0, 1, 2
HARDWARE_CPU_CYCLES, SOFTWARE_CPU_CLOCK, SOFTWARE_DUMMY = 0, 0, 9

SAMPLE_TID, SAMPLE_TIME = 1 << 1, 1 << 2
SAMPLE_CALLCHAIN, SAMPLE_RAW, SAMPLE_CGROUP = 1 << 5, 1 << 10, 1 << 21
FORMAT_LOST = 1 << 4

_DISABLED, _EXCLUDE_KERNEL, _EXCLUDE_IDLE = 1 << 0, 1 << 5, 1 << 7
_MMAP, _COMM, _FREQ, _TASK = 1 << 8, 1 << 9, 1 << 10, 1 << 13
_WATERMARK, _SAMPLE_ID_ALL = 1 << 14, 1 << 18
_MMAP2, _COMM_EXEC, _USE_CLOCKID = 1 << 23, 1 << 24, 1 << 25
_KSYMBOL, _BPF_EVENT, _CGROUP = 1 << 29, 1 << 30, 1 << 32

_CLOCK_MONOTONIC = 1
_OPEN_CLOEXEC = 8
_IOC_ENABLE, _IOC_SET_OUTPUT = 0x2400, 0x2405
_ATTRIBUTE_BYTES = 128  # PERF_ATTR_SIZE_VER7; older kernels accept it when the tail is zero


@dataclass(frozen=True, slots=True)
class Sampler:
    """The settings of the sampling event: what it samples, and what it records beside."""

    frequency_hz: int = 97
    hardware_cycles: bool = False
    kernel: bool = True
    cgroup: bool = True  # v5.7: 96aaab686505 PERF_SAMPLE_CGROUP
    kernel_symbols: bool = True  # v5.1: 76193a94522f PERF_RECORD_KSYMBOL
    lost_counter: bool = True  # v6.0: 119a784c8127 PERF_FORMAT_LOST
    watermark_bytes: int = 0

    def attribute(self) -> bytes:
        """The `struct perf_event_attr` that asks for this."""
        flags = (
            _DISABLED
            | _FREQ
            | _EXCLUDE_IDLE
            | _MMAP
            | _MMAP2
            | _COMM
            | _COMM_EXEC
            | _TASK
            | _SAMPLE_ID_ALL
            | _USE_CLOCKID
            | _WATERMARK
        )
        sample_type = SAMPLE_TID | SAMPLE_TIME | SAMPLE_CALLCHAIN
        if not self.kernel:
            flags |= _EXCLUDE_KERNEL
        if self.cgroup:
            flags |= _CGROUP
            sample_type |= SAMPLE_CGROUP
        if self.kernel_symbols:
            flags |= _KSYMBOL | _BPF_EVENT
        kind, config = (
            (TYPE_HARDWARE, HARDWARE_CPU_CYCLES)
            if self.hardware_cycles
            else (TYPE_SOFTWARE, SOFTWARE_CPU_CLOCK)
        )
        read_format = FORMAT_LOST if self.lost_counter else 0
        return _pack(
            kind, config, self.frequency_hz, sample_type, read_format, flags, self.watermark_bytes
        )


@dataclass(frozen=True, slots=True)
class Tracepoint:
    """Every hit of a tracepoint, with its record and the cgroup of the task that hit it."""

    number: int
    watermark_bytes: int = 0
    cgroup: bool = False  # v5.7: 96aaab686505 PERF_SAMPLE_CGROUP
    lost_counter: bool = False

    def attribute(self) -> bytes:
        """The `struct perf_event_attr` that asks for this."""
        flags = _DISABLED | _SAMPLE_ID_ALL | _USE_CLOCKID | _WATERMARK
        sample_type = SAMPLE_TID | SAMPLE_TIME | SAMPLE_RAW
        if self.cgroup:
            sample_type |= SAMPLE_CGROUP
        return _pack(TYPE_TRACEPOINT, self.number, 1, sample_type, 0, flags, self.watermark_bytes)


@dataclass(frozen=True, slots=True)
class Renames:
    """No samples, only what processes are renamed to, by themselves or by exec.

    With `births` also which process started which.
    """

    watermark_bytes: int = 0
    births: bool = False
    lost_counter: bool = False

    def attribute(self) -> bytes:
        """The `struct perf_event_attr` that asks for this."""
        flags = _DISABLED | _SAMPLE_ID_ALL | _USE_CLOCKID | _WATERMARK | _COMM
        if self.births:
            flags |= _TASK
        sample_type = SAMPLE_TID | SAMPLE_TIME
        return _pack(TYPE_SOFTWARE, SOFTWARE_DUMMY, 0, sample_type, 0, flags, self.watermark_bytes)


def _pack(kind: int, config: int, period: int, *rest: int) -> bytes:
    """`rest`: sample_type, read_format, flags, wakeup_watermark."""
    attribute = bytearray(_ATTRIBUTE_BYTES)
    struct.pack_into("<IIQQQQQII", attribute, 0, kind, _ATTRIBUTE_BYTES, config, period, *rest, 0)
    struct.pack_into("<i", attribute, 92, _CLOCK_MONOTONIC)
    return bytes(attribute)


_libc = ctypes.CDLL(None, use_errno=True)


def open_event(attribute: bytes, *, pid: int = -1, cpu: int = -1) -> int:
    """`perf_event_open(2)`; raises the plain `OSError` the kernel answers with."""
    number = _SYSCALL_NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open is not known for {os.uname().machine}")
    buffer = ctypes.create_string_buffer(attribute, len(attribute))
    descriptor: int = _libc.syscall(
        ctypes.c_long(number),
        buffer,
        ctypes.c_int(pid),
        ctypes.c_int(cpu),
        ctypes.c_int(-1),
        ctypes.c_ulong(_OPEN_CLOEXEC),
    )
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return descriptor


def enable(descriptor: int) -> None:
    """Start counting."""
    fcntl.ioctl(descriptor, _IOC_ENABLE, 0)


def redirect(descriptor: int, into: int) -> None:
    """Let an event write into the ring of another event of the same CPU."""
    fcntl.ioctl(descriptor, _IOC_SET_OUTPUT, into)


def read_lost(descriptor: int) -> int:
    """Samples the kernel dropped for this event, of an event opened with `lost_counter`."""
    _value, lost = struct.unpack("<QQ", os.read(descriptor, 16))
    return int(lost)


def carries_cgroup(tracepoint: int, cpu: int) -> bool:
    """Return whether this kernel gives the cgroup of the task with each hit of a tracepoint."""
    try:
        os.close(open_event(Tracepoint(tracepoint, cgroup=True).attribute(), cpu=cpu))
    except OSError:
        return False  # what else may be wrong shows when it is opened without
    return True


def detect_sampler(wanted: Sampler, cpu: int) -> Sampler:
    """The most of `wanted` that this kernel grants us on `cpu`.

    Raises `SourceDenied` or `SourceAbsent` when not even user-mode sampling is.
    """
    failure: OSError | None = None
    for candidate in _ladder(wanted):
        try:
            os.close(open_event(candidate.attribute(), cpu=cpu))
        except OSError as error:
            failure = failure or error
            if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise SourceError("perf_event_open", error.strerror or "no room") from error
            continue
        return candidate
    assert failure is not None
    raise _explain(failure) from failure


def _ladder(wanted: Sampler) -> list[Sampler]:
    """From all we want to the least that is useful, best first."""
    steps = [replace(wanted, hardware_cycles=True), replace(wanted, hardware_cycles=False)]
    ladder: list[Sampler] = []
    for kernel in dict.fromkeys((wanted.kernel, False)):
        for step in steps:
            rungs = [
                step,
                replace(step, lost_counter=False),
                replace(step, lost_counter=False, cgroup=False),
                replace(step, lost_counter=False, cgroup=False, kernel_symbols=False),
            ]
            ladder.extend(replace(rung, kernel=kernel) for rung in rungs)
    return list(dict.fromkeys(ladder))


def _explain(error: OSError) -> SourceError:
    if error.errno in (errno.EACCES, errno.EPERM):
        return SourceDenied(
            "perf_event_open",
            "not permitted",
            hint="run as root or grant CAP_PERFMON; `nodescope doctor` says how",
        )
    return SourceAbsent("perf_event_open", error.strerror or f"errno {error.errno}")
