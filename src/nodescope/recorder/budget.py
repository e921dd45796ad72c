"""The recorder's own budget: measured over a window, answered by folding and by the rate.

`samples/novelty.py` holds new stacks to their part of the budget. On a machine on which they
cost more CPU than elsewhere that part is halved here, twice at most, before a sample less is
taken. That does not help against memory soon enough to be judged: what a segment has met is
kept until it is sealed.
Sampling is most of the cost on most nodes, but not on one that starts hundreds of
processes a second: their births and deaths cost the same at any rate, and so does
memory. So every step down has to show within half a window what it was worth, and one
that did not bring the cost down by a fifth is taken back: being blind would not make
the node's recorder cheaper. That cost is then let be for some minutes, unless it rises
by half. A rate that was lowered is raised again, step by step, once the cost has been
low enough for some minutes. Every try that failed doubles the minutes until the next.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from nodescope.quantities import HOUR_NS, MINUTE_NS, SECOND_NS
from nodescope.recorder.samples.novelty import TIGHTEST

WINDOW_NS = MINUTE_NS
GRACE_NS = 20 * SECOND_NS  # start-up reads symbols; that is paid once
LADDER_HZ = (49, 23, 11, 5)
HELPED = 0.8  # of the cost before, at most, after a step that was worth it
RISEN = 1.5  # of the cost that no step brought down: more is another trouble
ROOM = 0.9  # of the limit, at most, that the higher rate is expected to cost
ROOM_TO_UNFOLD = 0.7  # of the limit, at most, that is used when fewer stacks are folded again
PATIENCE_NS = 10 * MINUTE_NS
MOST_PATIENCE_NS = 4 * HOUR_NS


@dataclass(frozen=True, slots=True)
class Decision:
    """Sample at another rate from now on, or keep another part of the new stacks whole."""

    frequency_hz: int
    folding: int  # how many times the allowance of new stacks is halved
    kind: str
    message: str
    loud: bool = True  # whether it is new: the same trouble once more is only recorded


@dataclass(slots=True)
class _Bound:
    """One thing of which the recorder may use so much."""

    name: str
    limit: float
    patience_ns: int = PATIENCE_NS
    tight_ns: int | None = None  # when there was last no room for a higher rate
    settled_at: float | None = None  # what was used when a step down did not help
    settled_ns: int = 0
    raised_ns: int | None = None  # when the rate was last raised because it allowed that

    def look(self, now_ns: int, used: float, step: _Step | None, *, folding: bool) -> None:
        """Note how much is used; `step` is the one that a higher rate would undo, if any."""
        room = self.limit if step is None else ROOM * self.limit / step.worth
        if folding:
            room = min(room, ROOM_TO_UNFOLD * self.limit)
        if self.tight_ns is None or used > room:
            self.tight_ns = now_ns
        elif self.is_calm(now_ns):
            self.settled_at = None
            if step is None and not folding:
                self.patience_ns = PATIENCE_NS  # all is as it should be

    def is_calm(self, now_ns: int) -> bool:
        """Return whether a higher rate would have stayed within the limit for long enough."""
        return self.tight_ns is not None and now_ns - self.tight_ns >= self.patience_ns

    def is_known(self, used: float) -> bool:
        """Return whether this is the use that no lower rate has reduced."""
        return self.settled_at is not None and used <= RISEN * self.settled_at

    def is_exceeded(self, now_ns: int, used: float) -> bool:
        let_be = self.is_known(used) and now_ns - self.settled_ns < self.patience_ns
        return used > self.limit and not let_be

    def note_return(self, now_ns: int) -> None:
        """The limit is exceeded once more: be more patient if it was given way to just now."""
        if self.raised_ns is not None and now_ns - self.raised_ns < self.patience_ns:
            self.wait_longer()
        self.raised_ns = None

    def wait_longer(self) -> None:
        self.patience_ns = min(2 * self.patience_ns, MOST_PATIENCE_NS)

    def settle(self, now_ns: int, used: float) -> None:
        """No lower rate helps: let it be for a while."""
        if self.is_known(used):
            self.wait_longer()
        self.settled_at, self.settled_ns = used, now_ns

    def describe(self, used: float) -> str:
        if self.name == "memory":
            return f"{used / 1e6:.0f} MB of memory, over {self.limit / 1e6:.0f} MB"
        return f"{used:.2%} of a core, over {self.limit:.2%}"


@dataclass(slots=True)
class _Step:
    """A step down: between which rates, for what, and what was used before and after."""

    from_hz: int
    to_hz: int
    bound: _Bound
    before: float
    after: float | None = None  # not known yet

    @property
    def worth(self) -> float:
        """How many times as much the higher rate costs: as was seen, no more than by the rates."""
        by_rate = self.from_hz / self.to_hz
        return min(by_rate, max(1.0, self.before / self.after)) if self.after else by_rate


class Budget:
    """Decides at which rate to sample and how much to fold; knows nothing about how."""

    def __init__(self, cpu_ratio: float, memory_bytes: int) -> None:
        self.cpu_ratio = cpu_ratio
        self._cpu = _Bound("cpu", cpu_ratio)
        self._memory = _Bound("memory", memory_bytes)
        self._readings: deque[tuple[int, int]] = deque()  # monotonic ns, cpu ns
        self._suspected = False  # over the limit by a window that began before
        self._started_ns: int | None = None
        self._changed_ns: int | None = None
        self._steps: list[_Step] = []  # those in force
        self._folding = 0  # times that the allowance of new stacks was halved

    def decide(
        self, now_ns: int, cpu_ns: int, rss_bytes: int, frequency_hz: int, *, diverse: bool = False
    ) -> Decision | None:
        """Decide what to change after this reading; None to go on as it is.

        `diverse` says that many stacks are new, so that folding more of them would help.
        """
        if self._started_ns is None:
            self._started_ns = now_ns
        if now_ns - self._started_ns < GRACE_NS:
            return None
        used = self._use(now_ns, cpu_ns, rss_bytes)
        for bound, amount in used:
            own = (step for step in reversed(self._steps) if step.bound is bound)
            folding = bound is self._cpu and self._folding > 0
            bound.look(now_ns, amount, next(own, None), folding=folding)
        step = self._steps[-1] if self._steps else None
        if step is not None and step.after is None:
            step.after = next((amount for bound, amount in used if bound is step.bound), None)
            if step.after is None:
                return None  # one thing at a time: first what the last step was worth
            if step.after > max(step.bound.limit, HELPED * step.before):
                return self._take_back(now_ns, frequency_hz, step.after)
            self._suspected = True  # measured since the step, so nothing to make sure of
        for bound, amount in used:
            if bound.is_exceeded(now_ns, amount):
                if bound is self._cpu and not self._suspected:
                    self._make_sure(now_ns, cpu_ns)
                    return None
                if bound is self._cpu and diverse and self._folding < TIGHTEST:
                    return self._fold(now_ns, frequency_hz, amount)
                return self._lower(now_ns, frequency_hz, bound, amount)
            if bound is self._cpu:
                self._suspected = False
        if step is not None:
            return self._raise(now_ns)
        return self._unfold(now_ns, frequency_hz) if self._folding else None

    def _make_sure(self, now_ns: int, cpu_ns: int) -> None:
        """Measure once more: a moment is no trouble, and half a window of calm no measure of it."""
        self._suspected = True
        self._readings.clear()
        self._readings.append((now_ns, cpu_ns))

    def forgive(self) -> None:
        """Judge nothing of the CPU time until now."""
        self._readings.clear()

    def _use(self, now_ns: int, cpu_ns: int, rss_bytes: int) -> list[tuple[_Bound, float]]:
        """Return the use of each bound, as far as it is known: nothing soon after a change."""
        used: list[tuple[_Bound, float]] = []
        if self._changed_ns is None or now_ns - self._changed_ns >= WINDOW_NS // 2:
            used.append((self._memory, float(rss_bytes)))
        ratio = self._measure(now_ns, cpu_ns)
        if ratio is not None:
            used.append((self._cpu, ratio))
        return used

    def _measure(self, now_ns: int, cpu_ns: int) -> float | None:
        """The share of a core used over the window; None until half of it has passed."""
        self._readings.append((now_ns, cpu_ns))
        while now_ns - self._readings[0][0] > WINDOW_NS:
            self._readings.popleft()
        since_ns, since_cpu_ns = self._readings[0]
        if now_ns - since_ns < WINDOW_NS // 2:
            return None
        return (cpu_ns - since_cpu_ns) / (now_ns - since_ns)

    def _fold(self, now_ns: int, frequency_hz: int, used: float) -> Decision:
        """Keep fewer of the new stacks whole: samples are worth more than rare stacks."""
        self._cpu.note_return(now_ns)
        self._folding += 1
        message = f"used {self._cpu.describe(used)}: folding more of the stacks that are new"
        loud = not self._cpu.is_known(used)
        return self._change(now_ns, frequency_hz, "folding_tightened", message, loud=loud)

    def _unfold(self, now_ns: int, frequency_hz: int) -> Decision | None:
        """Undo the last tightening if there has been room for that for long."""
        if not self._cpu.is_calm(now_ns):
            return None
        self._folding -= 1
        self._cpu.raised_ns = self._cpu.tight_ns = now_ns
        message = "its cost allows more: folding fewer of the stacks that are new"
        return self._change(now_ns, frequency_hz, "folding_relaxed", message, loud=True)

    def _lower(self, now_ns: int, frequency_hz: int, bound: _Bound, used: float) -> Decision | None:
        lower = next((step for step in LADDER_HZ if step < frequency_hz), None)
        if lower is None:
            bound.settle(now_ns, used)
            return None
        bound.note_return(now_ns)
        self._steps.append(_Step(frequency_hz, lower, bound, used))
        rates = f"sampling at {lower} Hz instead of {frequency_hz} Hz"
        message, loud = f"used {bound.describe(used)}: {rates}", not bound.is_known(used)
        return self._change(now_ns, lower, "rate_lowered", message, loud=loud)

    def _take_back(self, now_ns: int, frequency_hz: int, used: float) -> Decision:
        step = self._steps.pop()
        loud = not step.bound.is_known(used)
        step.bound.settle(now_ns, used)
        message = (
            f"used {step.bound.describe(used)}, at {frequency_hz} Hz as at {step.from_hz} Hz: "
            f"the cost is not in the sampling; back to {step.from_hz} Hz"
        )
        return self._change(now_ns, step.from_hz, "rate_restored", message, loud=loud)

    def _raise(self, now_ns: int) -> Decision | None:
        """Undo the last step down if there has been room for that for long."""
        step = self._steps[-1]
        if not step.bound.is_calm(now_ns):
            return None
        self._steps.pop()
        step.bound.raised_ns = step.bound.tight_ns = now_ns
        message = (
            f"its cost allows more: sampling at {step.from_hz} Hz again instead of {step.to_hz} Hz"
        )
        return self._change(now_ns, step.from_hz, "rate_raised", message, loud=True)

    def _change(
        self, now_ns: int, frequency_hz: int, kind: str, message: str, *, loud: bool
    ) -> Decision:
        self._readings.clear()  # the next reading must not blame the old rate
        self._suspected = False
        self._changed_ns = now_ns
        return Decision(frequency_hz, self._folding, kind, message, loud)
