"""Asks the observers of the node when they are due, and keeps account of what each costs.

Times lie on the grid on which the cores are read, so that the recorder wakes
once for all of them. An observer that may wait for somebody answers from a
thread of its own. One whose source is not on this node is asked again now and
then: a daemon may come later. One that fails is asked less and less often, up to every five
minutes; what it did not see is a gap, as is the time in which a thread gets no answer. One
that takes more than its share of the recorder's budget is asked half as often, and that is
said. At the end each is asked once more, so that the last seconds are not missing, unless it
is slow, absent or failing.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from nodescope.clock import Clock
from nodescope.errors import NodescopeError, SourceAbsent
from nodescope.ingest.observation import Observation
from nodescope.quantities import SECOND_NS, format_duration
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.observer import Observer
from nodescope.records.columns import Columns, columns_by_table
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.records.node_tables import SourceCostRow
from nodescope.records.table import Row

_RETRY_NS = 300 * SECOND_NS
_ABSENT_NS = 30 * SECOND_NS
_COSTS_NS = 60 * SECOND_NS
_LONGEST_NS = 120 * SECOND_NS
_JOIN_S = 2.0
_SILENT_NS = 60 * SECOND_NS  # one that took so long for an answer observes nothing
_LAST_SLOW_NS = SECOND_NS // 5  # one that took so long is not asked a last time
_LAST_APART_NS = SECOND_NS  # since it was asked, or half its interval: less tells nothing new
EASE_SHARE = 0.3  # of the recorder's budget, for one observer


@dataclass(slots=True)
class _Account:
    """One observer with its schedule and what it has cost."""

    name: str
    observer: Observer
    interval_ns: int
    due_ns: int
    worker: _Worker | None = None
    busy: bool = False
    begin_segment: bool = True
    cpu_ns: int = 0
    cpu_before_ns: int = 0
    reads: int = 0
    failures: int = 0
    failed_since_ns: int | None = None
    reason: str = ""
    slowest_ns: int = 0
    asked_ns: int = 0
    put_ns: int = 0  # when it was asked what it has not answered yet
    took_ns: int | None = None  # of the last answer; None: there was none, or it was absent

    def cost(self, now_ns: int) -> SourceCostRow:
        """Return what the observer has cost until now."""
        return SourceCostRow(
            time_ns=now_ns,
            source=self.name,
            cpu_ns=self.cpu_ns,
            reads=self.reads,
            failures=self.failures,
            interval_ns=self.interval_ns,
            slowest_ns=self.slowest_ns,
        )

    def may_be_asked_last(self, now_ns: int) -> bool:
        """Return whether the observer answers soon, and has something new to report."""
        if self.busy or self.failed_since_ns is not None or self.took_ns is None:
            return False
        apart = min(_LAST_APART_NS, self.interval_ns // 2)
        return self.took_ns <= _LAST_SLOW_NS and now_ns - self.asked_ns >= apart


@dataclass(frozen=True, slots=True)
class _Answer:
    account: _Account
    asked_ns: int
    said: Observation | None
    failure: str | None
    cpu_ns: int
    took_ns: int


@dataclass(slots=True)
class _Worker:
    """The thread of a patient observer: one question at a time."""

    account: _Account
    answers: queue.SimpleQueue[_Answer]
    questions: queue.SimpleQueue[tuple[int, bool] | None] = field(default_factory=queue.SimpleQueue)
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(
            target=self._run, name=f"observe-{self.account.name}", daemon=True
        )
        self.thread.start()

    def _run(self) -> None:
        while (asked := self.questions.get()) is not None:
            self.answers.put(_ask(self.account, *asked))
        self.account.observer.close()


class Observing:
    """The observers of one run of the recorder; used by its one thread only."""

    def __init__(self, observers: Mapping[str, Observer], log: EventLog, clock: Clock) -> None:
        now = clock.monotonic_ns()
        self._log = log
        self._answers: queue.SimpleQueue[_Answer] = queue.SimpleQueue()
        self._rows: list[Row] = []
        self._costs_ns = now
        self._accounts = [
            _Account(name, observer, observer.interval_ns, now)
            for name, observer in observers.items()
        ]
        for account in self._accounts:
            if account.observer.patient:
                account.worker = _Worker(account, self._answers)
                account.worker.start()

    @property
    def due_ns(self) -> int | None:
        """When the next one is due; None if there is none."""
        return min((each.due_ns for each in self._accounts if not each.busy), default=None)

    @property
    def answered(self) -> bool:
        """Return whether an answer of a thread waits to be taken."""
        return not self._answers.empty()

    def align(self, grid_ns: int) -> None:
        """Put what is due from now on onto the grid of the core readings."""
        for account in self._accounts:
            account.due_ns = grid_ns

    def begin_segment(self) -> None:
        """From now on each says whole what it only says when it changes."""
        for account in self._accounts:
            account.begin_segment = True

    def work(self, now_ns: int, soon_ns: int, budget_ratio: float) -> None:
        """Take the answers that came, and ask whoever is due by `soon_ns`."""
        self._collect()  # first: whose answer was not taken counts as busy, and would wake us again
        for account in self._accounts:
            if account.busy or account.due_ns > soon_ns:
                continue
            late = max(0, soon_ns - account.due_ns)
            account.due_ns += (late // account.interval_ns + 1) * account.interval_ns
            self._put(account, now_ns)
        self._note_silent(now_ns)
        if now_ns - self._costs_ns >= _COSTS_NS:
            self._say_costs(now_ns, budget_ratio)

    def _put(self, account: _Account, now_ns: int) -> None:
        """Ask one; a patient one answers later."""
        begins, account.begin_segment = account.begin_segment, False
        if account.worker is not None:
            account.busy = True
            account.put_ns = now_ns
            account.worker.questions.put((now_ns, begins))
        else:
            self._take(_ask(account, now_ns, begins))

    def _note_silent(self, now_ns: int) -> None:
        """Report those that wait for somebody who does not answer."""
        for account in self._accounts:
            silent = account.busy and now_ns - account.put_ns >= _SILENT_NS
            if silent and account.failed_since_ns is None:
                account.failed_since_ns = account.put_ns
                account.reason = "its source does not answer"
                message = f"not observed: {account.reason}"
                self._log.event(now_ns, "source_degraded", account.name, message)

    def _collect(self) -> None:
        while self.answered:
            answer = self._answers.get()
            answer.account.busy = False
            self._take(answer)

    def _take(self, answer: _Answer) -> None:
        account = answer.account
        account.reads += 1
        account.cpu_ns += answer.cpu_ns
        account.slowest_ns = max(account.slowest_ns, answer.took_ns)
        account.asked_ns = answer.asked_ns
        account.took_ns = None if answer.said is None else answer.took_ns
        if answer.failure is not None:
            self._failed(account, answer)
            return
        if account.failed_since_ns is not None:
            # One that was silent answers now what it was asked then.
            until_ns = answer.asked_ns
            if account.failed_since_ns >= until_ns:
                until_ns += answer.took_ns
            self._gap(account, account.failed_since_ns, until_ns, account.reason)
            account.failed_since_ns = None
            account.due_ns = answer.asked_ns + account.interval_ns
        if answer.said is None:
            account.due_ns = max(account.due_ns, answer.asked_ns + _ABSENT_NS)
            return
        self._rows += answer.said.rows
        for event in answer.said.events:
            self._log.add(event)
        for gap in answer.said.gaps:
            self._log.gap(gap.from_ns, gap.to_ns, gap.source, gap.reason, lost=gap.lost)

    def _failed(self, account: _Account, answer: _Answer) -> None:
        assert answer.failure is not None
        account.failures += 1
        if account.failed_since_ns is None or account.reason != answer.failure:
            if account.failed_since_ns is None:
                account.failed_since_ns = answer.asked_ns
            account.reason = answer.failure
            message = f"not observed: {answer.failure}"
            self._log.event(answer.asked_ns, "source_degraded", account.name, message)
        failed_for = answer.asked_ns - account.failed_since_ns
        account.due_ns = answer.asked_ns + min(_RETRY_NS, max(account.interval_ns, failed_for))

    def _gap(self, account: _Account, from_ns: int, to_ns: int, reason: str) -> None:
        self._log.gap(from_ns, to_ns, account.name, reason)

    def _say_costs(self, now_ns: int, budget_ratio: float) -> None:
        passed = now_ns - self._costs_ns
        self._costs_ns = now_ns
        for account in self._accounts:
            ratio = (account.cpu_ns - account.cpu_before_ns) / passed
            account.cpu_before_ns = account.cpu_ns
            if ratio > EASE_SHARE * budget_ratio and account.interval_ns < _LONGEST_NS:
                account.interval_ns *= 2
                message = (
                    f"took {ratio:.2%} of a core: asked every "
                    f"{format_duration(account.interval_ns)} from now on"
                )
                self._log.event(now_ns, "source_eased", account.name, message)
            self._rows.append(account.cost(now_ns))
            account.slowest_ns = 0

    def take_rows(self) -> dict[str, Columns]:
        """Return the rows since the last call, as columns by table."""
        self._collect()
        rows, self._rows = self._rows, []
        return columns_by_table(rows)

    def forget(self) -> None:
        """Drop what was said: there was no room for it."""
        self._collect()
        self._rows = []

    def close(self, now_ns: int) -> None:
        """Ask a last time, let the threads end, and note what was never seen."""
        self._collect()
        deadline = time.monotonic() + _JOIN_S
        # Those with a thread first: they answer while the others are asked.
        for account in sorted(self._accounts, key=lambda each: each.worker is None):
            if account.may_be_asked_last(now_ns) and time.monotonic() < deadline:
                self._put(account, now_ns)
            if account.worker is not None:
                account.worker.questions.put(None)
        for account in self._accounts:
            if account.worker is not None and account.worker.thread is not None:
                account.worker.thread.join(max(0.0, deadline - time.monotonic()))
            elif account.worker is None:
                account.observer.close()
        self._collect()
        for account in self._accounts:
            if account.failed_since_ns is not None:
                self._gap(account, account.failed_since_ns, now_ns, account.reason)
        if now_ns > self._costs_ns:
            self._say_costs(now_ns, float("inf"))


def _ask(account: _Account, now_ns: int, begins_segment: bool) -> _Answer:
    """Ask one observer; whatever goes wrong inside it stays its own."""
    cpu, started = time.thread_time_ns(), time.monotonic_ns()
    said: Observation | None = None
    failure: str | None = None
    try:
        if begins_segment:
            account.observer.begin_segment()
        answer = account.observer.observe(now_ns)
        unknown = {event.kind for event in answer.events} - EVENT_KINDS.keys()
        if unknown:
            raise ValueError(f"not a declared kind of event: {min(unknown)}")
        said = answer
    except SourceAbsent:
        said = None  # not on this node: nothing to tell, and nothing is missing
    except NodescopeError as error:
        failure = str(error)
    except Exception as error:  # noqa: BLE001 the supervised boundary: one source, not the recorder
        failure = f"a defect of ours: {type(error).__name__}: {error}"
    return _Answer(
        account,
        now_ns,
        said,
        failure,
        time.thread_time_ns() - cpu,
        time.monotonic_ns() - started,
    )
