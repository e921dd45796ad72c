from __future__ import annotations

from pathlib import Path

from tests.kernel_files import write

from nodescope.sources.limits.hardware_counts import (
    find_counters,
    parse_aer_total,
    read_counter,
)

AER = "RxErr 2\nBadTLP 1\nTOTAL_ERR_{word} {total}\n"


def _read(sys: Path) -> dict[tuple[str, str], int]:
    counts = filter(None, map(read_counter, find_counters(sys)))
    return {(count.name, count.subject): count.value for count in counts}


def test_memory_by_label_else_by_controller(tmp_path: Path) -> None:
    mc = tmp_path / "devices/system/edac/mc"
    dimm = {"dimm_label": "CPU_SrcID#0_Ha#0_Chan#0_DIMM#0\n", "dimm_ce_count": "5\n"}
    write(mc / "mc0/dimm0", dimm | {"dimm_ue_count": "0\n"})
    write(mc / "mc0", {"ce_count": "5\n", "ue_count": "0\n"})
    write(mc / "mc1", {"ce_count": "1\n", "ue_count": "2\n"})
    label = "CPU_SrcID#0_Ha#0_Chan#0_DIMM#0"
    assert _read(tmp_path) == {
        ("edac_ce", label): 5,
        ("edac_ue", label): 0,
        ("edac_ce", "mc1"): 1,
        ("edac_ue", "mc1"): 2,
    }


def test_heat_by_package(tmp_path: Path) -> None:
    for cpu, package in ((0, 0), (1, 0), (2, 1)):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}"
        counts = {"core_throttle_count": f"{cpu + 1}\n", "package_throttle_count": "9\n"}
        write(folder / "thermal_throttle", counts)
        write(folder / "topology", {"physical_package_id": f"{package}\n"})
    assert _read(tmp_path) == {
        ("core_throttle", "package0"): 3,
        ("package_throttle", "package0"): 9,
        ("core_throttle", "package1"): 3,
        ("package_throttle", "package1"): 9,
    }


def test_errors_of_pci_devices_and_rdma_ports(tmp_path: Path) -> None:
    device = tmp_path / "bus/pci/devices/0000:3b:00.0"
    write(
        device,
        {
            "aer_dev_correctable": AER.format(word="COR", total=3),
            "aer_dev_nonfatal": AER.format(word="NONFATAL", total=0),
            "aer_dev_fatal": "nothing\n",
        },
    )
    port = tmp_path / "class/infiniband/mlx5_0/ports/1"
    write(port / "counters", {"link_downed": "2\n", "port_xmit_data": "9\n"})
    write(port / "hw_counters", {"out_of_sequence": "4\n"})
    assert _read(tmp_path) == {
        ("aer_correctable", "0000:3b:00.0"): 3,
        ("aer_nonfatal", "0000:3b:00.0"): 0,
        ("link_downed", "mlx5_0/1"): 2,
        ("out_of_sequence", "mlx5_0/1"): 4,
    }


def test_a_total_is_the_line_that_says_so() -> None:
    assert parse_aer_total(AER.format(word="FATAL", total=12).encode()) == 12
    assert parse_aer_total(b"RxErr 2\n") is None


def test_without_any_there_are_none(tmp_path: Path) -> None:
    assert find_counters(tmp_path) == []
