"""Names, limits and times of one run, chosen by its seed: no two runs are alike.

The same seed gives the same run again. Names are of services that people have; a rule
that knew one of them would show.
"""

from __future__ import annotations

import random

_SUBJECTS = (
    "billing", "ingest", "mailer", "thumbnail", "relay", "ledger", "sorter", "feeder", "courier",
    "search", "gateway", "catalog", "invoice", "session", "telemetry", "pricing", "upload",
)  # fmt: skip
_ROLES = (
    "agent", "worker", "sync", "proxy", "cache", "exporter", "api", "batch", "queue", "daemon",
)  # fmt: skip


class Variation:
    """The choices of one run, each made once and in order."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)
        self._taken: set[str] = set()

    def name(self) -> str:
        """Return a name that no other part of the run has, of at most 15 letters."""
        while True:
            name = f"{self._random.choice(_SUBJECTS)}-{self._random.choice(_ROLES)}"
            if name not in self._taken and len(name) <= 15:
                self._taken.add(name)
                return name

    def between(self, low: int, high: int) -> int:
        """Return a whole number, both ends included."""
        return self._random.randint(low, high)

    def seconds(self, low: float, high: float) -> float:
        """Return a time between two, to the hundredth."""
        return round(self._random.uniform(low, high), 2)
