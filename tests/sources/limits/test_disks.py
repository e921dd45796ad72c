from __future__ import annotations

from nodescope.sources.limits.disks import Disk, parse_diskstats

# Linux 3.10 has 11 numbers, 4.18 four more (discards), 5.5 two more (flushes).
STATS = b"""   8       0 sda 10 0 80 5 20 0 160 9 3 14 14
 259       0 nvme0n1 100 7 800 5 200 9 1600 9 0 14 14 30 0 240 5 40 3
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   7       1 loop1 0 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0 0
not a device
   8      16 sdb a b c d e f g h i j k
"""


def test_devices_that_ever_had_a_request() -> None:
    assert parse_diskstats(STATS) == {
        "sda": Disk(waiting=3, completed=30),
        "nvme0n1": Disk(waiting=0, completed=370),
        "loop1": Disk(waiting=2, completed=0),
    }
