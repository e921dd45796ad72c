"""When the open segment is sealed: the decision, without IO.

Every segment lists the names and stacks that its samples refer to. On a node of two cores
these take two fifths of a segment of two minutes, and most of them come again in the next one:
six minutes in one take a fifth fewer bytes per sample. So a segment that holds little is left
open for longer. Nothing more is lost by a crash: that is decided by how often is flushed. How
much it holds is what sealing it, and looking at it before, costs in memory and time; that is
bounded too.
"""

from __future__ import annotations

from nodescope.quantities import MINUTE_NS

SHORTEST_NS = 2 * MINUTE_NS
LONGEST_NS = 10 * MINUTE_NS
FULL_BYTES = 3 << 20  # of the open segment on disk; two busy cores write it in six minutes


class SegmentLength:
    """Decides at the end of every interval whether the open segment is sealed."""

    def __init__(self, given_ns: int | None) -> None:
        """Seal after every `given_ns`; None: by what the segment holds."""
        self.interval_ns = given_ns or SHORTEST_NS
        self._most = 1 if given_ns else LONGEST_NS // SHORTEST_NS
        self._passed = 0  # intervals since the segment was opened

    def is_over(self, open_bytes: int) -> bool:
        """Decide at the end of an interval, given what the open segment takes on disk."""
        self._passed += 1
        return self._passed >= self._most or open_bytes >= FULL_BYTES

    def restart(self) -> None:
        """Count anew: the segment was sealed."""
        self._passed = 0
