"""When free heap is worth returning to the kernel: the decision, without IO.

Memory that has grown since it was last returned may be free by now. But what every flush uses
comes back with the next one, page by page: on a node of 96 cores returning it took a tenth of
the recorder's CPU time. So what has come back by the next look is what the recorder needs.
"""

from __future__ import annotations

GROWTH_BYTES = 12 << 20  # of resident memory, until what is free of it is returned


class HeapGrowth:
    """Decides at every look, of which there is one per flush, whether to return free heap."""

    def __init__(self, limit_bytes: int) -> None:
        """Over `limit_bytes` it is always worth it: the budget must not blame what is free."""
        self._limit_bytes = limit_bytes
        self._needed_bytes = 0
        self._returned = False  # at the last look

    def is_worth_returning(self, rss_bytes: int) -> bool:
        """Decide whether to return free heap, given the resident memory."""
        grown = rss_bytes > self._needed_bytes + GROWTH_BYTES
        if grown and self._returned:
            self._needed_bytes, grown = rss_bytes, False
        self._returned = grown
        return grown or rss_bytes > self._limit_bytes

    def note_returned(self, rss_bytes: int) -> None:
        """Take note of the resident memory that is left."""
        if self._returned:
            self._needed_bytes = rss_bytes
