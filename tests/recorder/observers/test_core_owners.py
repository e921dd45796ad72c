from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodescope.errors import SourceError
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observers.core_owners import CoreOwnersObserver
from nodescope.recorder.watches.core_owners import CoreOwners, OwnedCore
from nodescope.records.witness_tables import CoreOwnerRow
from nodescope.sources.places import Places


class Found(CoreOwners):
    """One that was found already."""

    def __init__(self, owned: OwnedCore) -> None:
        super().__init__()
        self.owned = owned

    def take(self, *, whole: bool = False) -> list[OwnedCore]:
        first, self.owned.told = not self.owned.told, True
        return [self.owned] if whole or first else []

    def list_told(self) -> list[OwnedCore]:
        return [self.owned]


@pytest.mark.root
@pytest.mark.live
def test_how_a_thread_is_scheduled_is_told() -> None:
    cpu = max(os.sched_getaffinity(0))
    code = f"import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(7)); \
os.sched_setaffinity(0, {{{cpu}}}); print('x', flush=True); os.read(0, 1)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as hog:
        assert hog.stdout is not None
        hog.stdout.readline()
        owned = OwnedCore(cpu, hog.pid, hog.pid, 5, 4 * SECOND_NS)
        observer = CoreOwnersObserver(Places(), Found(owned))
        now = time.monotonic_ns()
        (row,) = observer.observe(now).rows_of(CoreOwnerRow)
        # It gives way to nobody: it is told of every ten seconds.
        again = [len(observer.observe(now + at * SECOND_NS).rows) for at in range(1, 22)]
        observer.close()
    assert again == [0] * 9 + [1] + [0] * 9 + [1, 0]
    assert (row.cpu, row.tid, row.policy, row.priority) == (cpu, hog.pid, "fifo", 7)
    assert (row.affinity, row.owned_ns) == (str(cpu), 4 * SECOND_NS - 5)
    assert row.cgroup is not None


def test_a_thread_that_has_ended_is_not_told(tmp_path: Path) -> None:
    observer = CoreOwnersObserver(Places(_proc(tmp_path)), Found(OwnedCore(1, 5, 5, 0, 9)))
    assert observer.observe(1).empty
    observer.close()


def test_without_samples_it_is_not_observed(tmp_path: Path) -> None:
    owners = CoreOwners()
    owners.blind = "no samples are taken"
    observer = CoreOwnersObserver(Places(_proc(tmp_path)), owners)
    with pytest.raises(SourceError, match="no samples"):
        observer.observe(1)
    observer.close()


def _proc(root: Path) -> Path:
    (root / "proc").mkdir()
    return root
