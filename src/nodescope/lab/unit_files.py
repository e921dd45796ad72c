"""Unit files of the lab's systemd, and the units beside which a fault happens."""

from __future__ import annotations

from nodescope.lab.unit_programs import command
from nodescope.lab.variation import Variation


def unit_file(
    exec_start: str, *settings: str, description: str = "A service of the lab", start: bool = True
) -> str:
    """Return a unit file; `settings` are further lines of its [Service]."""
    lines = [
        "[Unit]", f"Description={description}", "StartLimitIntervalSec=0",
        "[Service]", f"ExecStart={exec_start}", "MemoryAccounting=yes", "TasksAccounting=yes",
        *settings,
    ]  # fmt: skip
    return "\n".join([*lines, *(("[Install]", "WantedBy=multi-user.target") if start else ()), ""])


def make_neighbours(variation: Variation) -> dict[str, str]:
    """Return units that do some work and are well: nobody may be told of them."""
    grower, reader = variation.name(), variation.name()
    return {
        f"{grower}.service": unit_file(
            command(grower, "grow", variation.between(20, 60), 4, 0.05), "MemoryMax=1G"
        ),
        f"{reader}.service": unit_file(
            command(reader, "scan", "/etc", 0.02, variation.seconds(1.5, 4))
        ),
    }
