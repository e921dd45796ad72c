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
        f"{grower}.service": _make_grower(variation, grower),
        f"{reader}.service": unit_file(
            command(reader, "scan", "/etc", 0.02, variation.seconds(1.5, 4))
        ),
    }


def make_busy(variation: Variation) -> dict[str, str]:
    """Return units that use much of the machine, each within what it may."""
    names = [variation.name() for _ in range(6)]
    tasks = variation.between(10, 40)
    texts = (
        _make_grower(variation, names[0]),
        unit_file(command(names[1], "fork", tasks, 0.05), f"TasksMax={2 * tasks}"),
        unit_file(command(names[2], "flood", 1000 * variation.between(1, 4), 3600)),
        unit_file(command(names[3], "spin", 3600), "Nice=5"),
        unit_file(command(names[4], "scan", "/proc", 0.1, variation.seconds(2, 5))),
        unit_file(command(names[5], "fill", f"/var/{names[5]}", variation.between(20, 80), 0.1)),
    )
    return {f"{name}.service": text for name, text in zip(names, texts, strict=True)}


def _make_grower(variation: Variation, name: str) -> str:
    """Return a unit that takes its memory at its start, and keeps far from its limit."""
    return unit_file(command(name, "grow", variation.between(20, 60), 4, 0.05), "MemoryMax=1G")
