"""Packets for one core: `unshare --net --mount python steered_traffic.py CORE`.

Sends to itself over the loopback of its own network namespace, from whatever
core it may run on; the kernel steers each packet to the core named.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    core = int(sys.argv[1])
    subprocess.run(["mount", "-t", "sysfs", "sysfs", "/sys"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    steering = Path("/sys/class/net/lo/queues/rx-0/rps_cpus")
    if not steering.exists():
        print("impossible", "no packet steering in this kernel", flush=True)
        return
    high, low = divmod(1 << core, 1 << 32)
    steering.write_text(f"{high:x},{low:08x}" if high else f"{low:x}")
    receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    receiver.bind(("127.0.0.1", 0))
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(receiver.getsockname())
    print("sending", flush=True)
    while True:
        sender.send(b"packet")
        time.sleep(0.02)


if __name__ == "__main__":
    main()
