from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.exchange.core_times.test_mpstat import local_ns, ticks
from tests.exchange.text_archive import import_file, read_rows

from nodescope.exchange.core_times.sar import looks_like_sar, parse_sar
from nodescope.ingest.parsed import Notes, Reading
from nodescope.records.recorder_tables import CORE_STATES

SAR = """\
Linux 6.1.0-18-amd64 (node-7) \t11/16/26 \t_x86_64_\t(2 CPU)

03:08:22        CPU     %user     %nice   %system   %iowait    %steal     %idle
03:08:23        all      0.50      0.00     49.50      0.00      0.00     50.00
03:08:23          0      1.00      0.00      0.00      0.00      0.00     99.00
03:08:23          1      0.00      0.00     99.00      1.00      0.00      0.00

03:08:23        CPU     %user     %nice   %system   %iowait    %steal     %idle
03:08:24        all      0.50      0.00     49.50      0.00      0.00     50.00
03:08:24          0      0.00      0.00      0.00      0.00      0.00    100.00
03:08:24          1      0.00      0.00    100.00      0.00      0.00      0.00

Average:        CPU     %user     %nice   %system   %iowait    %steal     %idle
Average:        all      0.50      0.00     49.50      0.00      0.00     50.00
Average:          0      1.00      0.00      0.00      0.00      0.00     99.00
"""


def readings(text: str, notes: Notes | None = None) -> list[Reading]:
    return [one for batch in parse_sar([text.encode()], notes or Notes()) for one in batch]


def last_of(found: list[Reading], cpu: int) -> Reading:
    return [reading for reading in found if reading.cpu == cpu][-1]


def test_a_table_of_cores() -> None:
    notes = Notes()
    found = readings(SAR, notes)
    assert last_of(found, 1).time_ns == local_ns(2026, 11, 16, 3, 8, 24)
    assert ticks(last_of(found, 1)) == {"system": 199, "iowait": 1}
    assert ticks(last_of(found, 0)) == {"user": 1, "idle": 199}
    assert {reading.cpu for reading in found} == {0, 1}
    assert notes.facts["nodename"] == "node-7"
    assert not notes.skipped


@pytest.mark.parametrize(
    ("date", "ours"),
    [("11/16/2026", 16), ("2026-11-16", 16), ("16.11.2026", 16), ("16/11/26", 16), ("16.11.26", 16),
     ("2026/11/16", 16), ("11/05/26", 5)],
)  # fmt: skip
def test_dates_of_several_locales(date: str, ours: int) -> None:
    found = readings(SAR.replace("11/16/26", date))
    assert found[-1].time_ns == local_ns(2026, 11, ours, 3, 8, 24)


def test_a_clock_of_twelve_hours() -> None:
    text = SAR.replace("03:08:23  ", "12:08:23 AM").replace("03:08:24  ", "12:08:24 AM")
    assert readings(text)[-1].time_ns == local_ns(2026, 11, 16, 0, 8, 24)
    assert readings(text.replace(" AM", " PM"))[-1].time_ns == local_ns(2026, 11, 16, 12, 8, 24)


def test_decimal_commas() -> None:
    commas = "\n".join(
        line if line.startswith("Linux") else line.replace(".", ",") for line in SAR.split("\n")
    )
    assert readings(commas) == readings(SAR)


def test_other_tables_between_are_passed_over() -> None:
    notes = Notes()
    other = "03:08:23        DEV       tps\n03:08:23        sda      1.00\n\n"
    assert readings(SAR.replace("\n\n", "\n\n" + other, 1), notes) == readings(SAR)
    assert notes.skipped


def test_what_it_is_recognised_by() -> None:
    assert looks_like_sar(SAR.encode())
    assert not looks_like_sar(b"Linux 6.1.0 (x) 11/16/26 _x86_64_ (2 CPU)\n")
    assert not looks_like_sar(b"")


def test_a_text_that_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "sar.txt"
    cut = SAR.index("03:08:24          1") + 25
    path.write_text(SAR[:cut])
    report, archive = import_file(path, tmp_path / "archive")
    assert report.stopped_at == SAR.index("03:08:24          1")
    assert len(read_rows(archive, "cores")) == 5


@pytest.mark.live
@pytest.mark.beside
@pytest.mark.debian("sysstat")
@pytest.mark.parametrize("time_format", ["C.UTF-8", "POSIX"])
@pytest.mark.parametrize(
    "command",
    [
        ["sar", "-P", "ALL", "1", "2"],
        ["sar", "-u", "ALL", "-P", "ALL", "1", "2"],
        ["mpstat", "-P", "ALL", "1", "2"],
    ],
)
def test_real_sar_and_mpstat(command: list[str], time_format: str, tmp_path: Path) -> None:
    path = tmp_path / "sar.txt"
    with path.open("w") as file:
        environment = os.environ | {"LC_ALL": time_format}
        subprocess.run(command, stdout=file, env=environment, check=True)
    report, archive = import_file(path, tmp_path / "archive")
    rows = read_rows(archive, "cores")
    assert report.stopped_at is None
    assert report.malformed == 0
    cpus = {row["cpu"] for row in rows}
    assert cpus == set(range(len(cpus)))
    assert len(rows) == 3 * len(cpus)
    for cpu in cpus:
        mine = sorted((row for row in rows if row["cpu"] == cpu), key=lambda row: row["time_ns"])
        spent = sum(mine[-1][state] for state in CORE_STATES if not state.startswith("guest"))
        elapsed = (mine[-1]["time_ns"] - mine[0]["time_ns"]) / 1e9 * 100
        assert spent == pytest.approx(elapsed, rel=0.02)
