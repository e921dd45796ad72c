"""The observer of hardware, on files as the kernel writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.kernel_files import write

from nodescope.errors import SourceAbsent
from nodescope.quantities import SECOND_NS
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.hardware import HardwareObserver
from nodescope.records.event import Event
from nodescope.records.trouble_details import HardwareDetails
from nodescope.records.witness_tables import TroubleCountRow
from nodescope.sources.places import Places


@pytest.fixture
def observer(tmp_path: Path) -> HardwareObserver:
    _memory(tmp_path, corrected=0, not_corrected=0)
    _rdma(tmp_path, 0)
    return HardwareObserver(Setting(Places(tmp_path), tmp_path / "none"))


def _memory(root: Path, *, corrected: int, not_corrected: int) -> None:
    counts = {"dimm_ce_count": f"{corrected}\n", "dimm_ue_count": f"{not_corrected}\n"}
    write(root / "sys/devices/system/edac/mc/mc0/dimm3", {"dimm_label": "DIMM_B1\n", **counts})


def _rdma(root: Path, lost: int) -> None:
    counts = {"link_downed": "1\n", "symbol_error": "5\n"}
    port = root / "sys/class/infiniband/mlx5_0/ports/1"
    write(port / "counters", counts)
    write(port / "hw_counters", {"out_of_sequence": f"{lost}\n"})


def _look(observer: HardwareObserver, at: int) -> tuple[list[Event], list[TroubleCountRow]]:
    said = observer.observe(at * 30 * SECOND_NS)
    return said.events, said.rows_of(TroubleCountRow)


def test_errors_that_rise_are_events_of_their_kind(
    observer: HardwareObserver, tmp_path: Path
) -> None:
    events, rows = _look(observer, 1)
    assert events == []
    assert {(row.name, row.value) for row in rows} == {("link_downed", 1), ("symbol_error", 5)}
    _memory(tmp_path, corrected=12, not_corrected=1)
    _rdma(tmp_path, 1000)  # a lossy network: counted only
    events, rows = _look(observer, 2)
    assert {event.kind for event in events} == {"edac_ce", "edac_ue"}
    corrected = next(event for event in events if event.kind == "edac_ce")
    details = corrected.get(HardwareDetails)
    assert (details.device, details.errors, details.known_from) == ("DIMM_B1", 12, "counters")
    assert ("out_of_sequence", 1000) in {(row.name, row.value) for row in rows}


def test_a_machine_that_counts_nothing_has_none_to_show(tmp_path: Path) -> None:
    with pytest.raises(SourceAbsent):
        _look(HardwareObserver(Setting(Places(tmp_path), tmp_path / "none")), 1)
