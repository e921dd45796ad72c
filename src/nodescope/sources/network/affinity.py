"""Where an interrupt may go and where it does go: `/proc/irq/N` (kernel/irq/proc.c).

The effective mask is what the hardware was given: one core where the device
signals by MSI. It is absent before 4.15 and where the chip does not tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nodescope.sources.kernel_files import read_text


@dataclass(frozen=True, slots=True)
class Affinity:
    """Cores as the kernel lists them: `0-5,39`; None where it does not say."""

    allowed: str | None
    effective: str | None


def read_affinity(proc: Path, irq: int) -> Affinity:
    """One interrupt's; nothing is known of one that is gone."""
    folder = f"{proc}/irq/{irq}"
    return Affinity(
        read_text(f"{folder}/smp_affinity_list") or None,
        read_text(f"{folder}/effective_affinity_list") or None,
    )
