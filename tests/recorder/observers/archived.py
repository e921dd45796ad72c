"""An archive as a recorder that ran before would have left it."""

from __future__ import annotations

from pathlib import Path

from nodescope.archive.writer import ArchiveWriter
from nodescope.ingest.event_rows import event_rows
from nodescope.ingest.observation import Observation
from nodescope.records.columns import columns_by_table
from nodescope.records.recorder_tables import HeartbeatRow

BOOT = "0f9d3c1e-72a4-4f0b-9c55-7d1f0a2b3c4d"


class At:
    """A clock that stands still."""

    def __init__(self, now_ns: int) -> None:
        self.now_ns = now_ns

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ns(self) -> int:
        return self.now_ns + 1_700_000_000_000_000_000


def put_boot_id(root: Path, boot_id: str = BOOT) -> None:
    """The boot that a made tree is of."""
    path = root / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{boot_id}\n")


def keep(archive: Path, said: Observation, now_ns: int, boot_id: str = BOOT) -> None:
    """What an observer said becomes a segment of its own."""
    node = {"name": "made", "boot_id": boot_id}
    with ArchiveWriter.open(archive, node=node, clock=At(now_ns), tick_ns=1000) as writer:
        heartbeat = HeartbeatRow(time_ns=now_ns, wall_ns=At(now_ns).wall_ns())
        rows = [heartbeat, *said.rows, *event_rows(said.events)]
        for table, columns in columns_by_table(rows).items():
            writer.append(table, columns)
