"""Call traces of the kernel's log as stacks, from its lines one by one. Pure.

A trace is a few lines about the task and the core, `Call Trace:` and a frame a line, the
innermost first (arch/x86/kernel/dumpstack.c, arch/arm64/kernel/stacktrace.c, linux 3.10 to 6.18):

    CPU: 3 UID: 0 PID: 812 Comm: kworker/3:1 Not tainted 6.18.0
    Workqueue: events drain_vmap_area_work
    RIP: 0010:smp_call_function_many_cond+0x12e/0x550
    Call Trace:
     <TASK>
     ? __pfx_do_flush_tlb_all+0x10/0x10
     on_each_cpu_cond_mask+0x29/0x50
     </TASK>

Frames with `?` are left out: they are words that happened to lie on the stack. Where a trace was
printed by an interrupt that came for it (the tick, an NMI), the interrupt's own frames are left
out as well, and the stack is what it interrupted. A trace ends at `</TASK>`, at the next header,
or after a second. Lines of several CPUs come between each other; only where the kernel names the
caller (CONFIG_PRINTK_CALLER) can they be told apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from nodescope.quantities import SECOND_NS
from nodescope.sources.kernel_log.messages.continuation import RUNS_ON

_ENDS_NS = SECOND_NS
_MOST_FRAMES = 128
_MOST_CALLERS = 64
_MOST_STRANGE = 40  # lines between the frames: registers, and those of others
_LONGEST = 512
_MOST_CORES = 1 << 15

_HEAD = re.compile(
    r"\s*+(?:Call [Tt]race:|task:|CPU: \d|RIP: 0|NMI backtrace for cpu |Workqueue: |pc : |"
    r"Task dump for CPU |[^\s:]{1,16}+ ++[RSDTtXZPI] )",
    re.ASCII,
)
_FRAME = re.compile(
    r"\s*(?:<[^>\s]{1,8}>\s*)*(?:\[<[0-9a-f]{8,16}>\] )?(?P<stale>\? )?"
    r"(?P<function>[A-Za-z_.$][\w.$]{0,127})\+0x[0-9a-f]+/0x[0-9a-f]+"
    r"(?: \[[^\]]{1,128}\])?(?: \([A-Z]{1,4}\))?\s*\Z",
    re.ASCII,
)
_LEAF = re.compile(
    r"\s*(?:RIP: 0010:(?:\[<[0-9a-f]+>\]\s+\[<[0-9a-f]+>\]\s+)?|pc : )"
    r"(?P<function>[A-Za-z_.$][\w.$]{0,127})\+0x",
    re.ASCII,
)
_TASK = re.compile(
    r"task:(?P<comm>.{1,64}?)\s+state:\w\b.{0,40}?\bpid:\s*(?P<pid>\d{1,10})\b", re.ASCII
)
_FORMER_TASK = re.compile(  # up to 4.19: bare columns
    r"(?P<comm>\S.{0,15}?)\s+[RSDTtXZPI]\s+(?:[0-9a-f]{16}\s+)?\d+\s+(?P<pid>\d{1,10})\s+\d+\s+0x",
    re.ASCII,
)
_WORK = re.compile(r"Workqueue: .{1,64}? (?P<function>[\w.$]{1,128})(?:\s|\Z)", re.ASCII)
_OF_CORE = re.compile(r"(?:NMI backtrace for cpu|Task dump for CPU) (?P<cpu>\d{1,5})", re.ASCII)
_END = re.compile(r"\s*(?:</TASK>|---\[ end trace|Kernel panic|INFO: |BUG: |WARNING: )", re.ASCII)
_PIECES = re.compile(r"\n|\\n")

# What enters the kernel for an interrupt, and what prints a trace from one.
_ENTRY = re.compile(
    r"asm_sysvec_\w+|asm_common_interrupt|common_interrupt|(?:local_)?apic_timer_interrupt|"
    r"ret_from_intr|reschedule_interrupt|el1(?:h_64)?_irq|asm_exc_nmi|end_repeat_nmi|nmi",
    re.ASCII,
)
_PRINTS = frozenset({
    "dump_stack", "dump_stack_lvl", "show_stack", "sched_show_task", "dump_cpu_task",
    "nmi_cpu_backtrace", "nmi_cpu_backtrace_handler", "arch_trigger_cpumask_backtrace",
    "rcu_dump_cpu_stacks", "rcu_sched_clock_irq", "rcu_check_callbacks", "watchdog_timer_fn",
    "watchdog_overflow_callback", "ipi_cpu_backtrace", "do_handle_IPI",
})  # fmt: skip
_NO_FUNCTION = re.compile(r"srso_\w*thunk|__x86_return_thunk|__pfx_\w+|ret_from_fork_asm", re.ASCII)


class CallTrace(NamedTuple):
    """A stack, innermost frame last, and whose it is; None where the log does not say."""

    time_ns: int
    sequence: int
    cpu: int | None
    pid: int | None
    comm: str | None
    kind: str | None  # of the event that the trace belongs to
    work: str | None
    interrupted: bool
    frames: tuple[str, ...]


@dataclass(slots=True)
class _Pending:
    """The lines so far of one trace."""

    time_ns: int
    sequence: int
    last_ns: int
    cpu: int | None = None
    pid: int | None = None
    comm: str | None = None
    work: str | None = None
    leaf: str | None = None
    kind: str | None = None
    opened: bool = False  # `Call Trace:` was read
    strange: int = 0
    frames: list[str] = field(default_factory=list)  # innermost first


class CallTraces:
    """Recovers the traces of one log, whose lines are given in their order."""

    def __init__(self) -> None:
        self._pending: dict[str, _Pending] = {}  # by caller

    def concerns(self, text: str) -> bool:
        """Return whether a line may be one of a trace: nearly none is."""
        return bool(self._pending) or _HEAD.match(text) is not None

    def take(
        self, time_ns: int, text: str, sequence: int, kind: str | None = None, caller: str = ""
    ) -> list[CallTrace]:
        """Return the traces that a line ends; `kind` is that of the event it may belong to."""
        done: list[CallTrace] = []
        for piece in _PIECES.split(text) if "\n" in text or "\\n" in text else (text,):
            done += self._take_line(time_ns, piece[:_LONGEST], sequence, kind, caller)
        return done

    def flush(self, now_ns: int | None = None) -> list[CallTrace]:
        """Return the traces that are over by that time; all if none is given."""
        over = [
            caller
            for caller, pending in self._pending.items()
            if now_ns is None or now_ns - pending.last_ns > _ENDS_NS
        ]
        return [trace for caller in over for trace in self._end(caller)]

    def _take_line(
        self, time_ns: int, text: str, sequence: int, kind: str | None, caller: str
    ) -> list[CallTrace]:
        done: list[CallTrace] = []
        pending = self._pending.get(caller)
        if pending is not None and not 0 <= time_ns - pending.last_ns <= _ENDS_NS:
            done += self._end(caller)
            pending = None
        head = _HEAD.match(text)
        if head is not None:
            if pending is not None and pending.opened and _begins_another(text):
                done += self._end(caller)
                pending = None
            if pending is None:
                done += self._make_room()
                pending = self._pending[caller] = _Pending(time_ns, sequence, time_ns)
            _read_head(pending, text, kind)
        elif pending is None:
            return done
        elif not pending.opened:
            pending.strange += 1
            if pending.strange > _MOST_STRANGE:
                del self._pending[caller]
                return done
        elif not _read_frame(pending, text) or _END.match(text):
            return done + self._end(caller)
        pending.last_ns = time_ns
        return done

    def _make_room(self) -> list[CallTrace]:
        if len(self._pending) < _MOST_CALLERS:
            return []
        return self._end(min(self._pending, key=lambda each: self._pending[each].last_ns))

    def _end(self, caller: str) -> list[CallTrace]:
        pending = self._pending.pop(caller, None)
        trace = None if pending is None else _trace_of(pending)
        return [] if trace is None else [trace]


def _begins_another(text: str) -> bool:
    """Return whether a header opens a trace of its own; registers of the interrupted do not."""
    return not text.lstrip().startswith(("RIP: ", "pc : "))


def _read_head(pending: _Pending, text: str, kind: str | None) -> None:
    text = text.strip()
    if text.startswith(("Call Trace:", "Call trace:")):
        pending.opened, pending.kind = True, kind
        pending.strange = 0
    elif found := _LEAF.match(text):
        if pending.opened:
            _add_frame(pending, found["function"])
        else:
            pending.leaf = found["function"]
    elif found := _OF_CORE.match(text):
        pending.cpu = _core(found["cpu"])
    elif found := RUNS_ON.match(text):
        if pending.pid is None:
            pending.cpu, pending.comm = _core(found["cpu"]), found["comm"]
            pending.pid = _process(found["pid"])
    elif found := _WORK.match(text):
        pending.work = found["function"]
    elif found := (_TASK.match(text) or _FORMER_TASK.match(text)):
        if pending.pid is not None:  # the lines before were about another task
            pending.cpu = None
        pending.comm, pending.pid, pending.leaf = found["comm"], _process(found["pid"]), None


def _read_frame(pending: _Pending, text: str) -> bool:
    """Add the frame of a line, if it is one; False if there were too many other lines."""
    found = _FRAME.match(text)
    if found is None:
        pending.strange += 1
        return pending.strange <= _MOST_STRANGE
    if not found["stale"]:
        _add_frame(pending, found["function"])
    return True


def _add_frame(pending: _Pending, function: str) -> None:
    frames = pending.frames
    if len(frames) < _MOST_FRAMES and not _NO_FUNCTION.fullmatch(function):
        if frames and _ENTRY.fullmatch(frames[-1]) is None and frames[-1] == function:
            return  # the registers and the stack name it alike
        frames.append(function)


def _trace_of(pending: _Pending) -> CallTrace | None:
    frames, interrupted = pending.frames, False
    entries = [at for at, name in enumerate(frames) if _ENTRY.fullmatch(name)]
    if entries and any(name.partition(".")[0] in _PRINTS for name in frames[: entries[-1]]):
        rest = frames[entries[-1] + 1 :]
        if rest:
            frames, interrupted = rest, True
    if pending.leaf and not interrupted and frames[:1] != [pending.leaf]:
        frames = [pending.leaf, *frames]
    if not pending.opened or not frames:
        return None
    return CallTrace(
        pending.time_ns,
        pending.sequence,
        pending.cpu,
        pending.pid,
        pending.comm,
        pending.kind,
        pending.work,
        interrupted,
        tuple(reversed(frames)),
    )


def _core(text: str) -> int | None:
    return int(text) if int(text) < _MOST_CORES else None


def _process(text: str) -> int | None:
    return int(text) if int(text) < 1 << 31 else None
