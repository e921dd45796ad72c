"""When free heap is worth returning to the kernel: the decision, without IO.

Memory that has grown since it was last returned may be free by now. But what every flush uses
comes back with the next one, page by page: on a node of 96 cores returning it took a tenth of
the recorder's CPU time. So what has come back by the next look is what the recorder needs.
"""

from __future__ import annotations

GROWTH_BYTES = 8 << 20  # of resident memory, until what is free of it is returned
LOOKS = 12  # between two returns, while memory is over its budget


class HeapGrowth:
    """Decides at every look, of which there is one per flush, whether to return free heap."""

    def __init__(self, limit_bytes: int) -> None:
        """Over `limit_bytes` it is worth it now and then: a budget must not blame what is free."""
        self._limit_bytes = limit_bytes
        self._flush_bytes = 0  # resident once a flush has what it uses
        self._left_bytes = 0  # resident when free heap was last returned
        self._grown = False  # at the last look
        self._looks = LOOKS  # since free heap was returned

    def is_worth_returning(self, rss_bytes: int) -> bool:
        """Decide whether to return free heap, given the resident memory."""
        self._looks += 1
        grown = rss_bytes > self._flush_bytes + GROWTH_BYTES
        if grown and self._grown:
            self._flush_bytes, grown = rss_bytes, False
        self._grown = grown
        return grown or (rss_bytes > self._limit_bytes and self._looks > LOOKS)

    def note_returned(self, rss_bytes: int) -> None:
        """Take note of the resident memory that is left."""
        self._left_bytes, self._looks = rss_bytes, 0
        if self._grown:
            self._flush_bytes = rss_bytes

    def estimate_needed(self, rss_bytes: int) -> int:
        """Return the resident memory; over the limit without what was free of it lately."""
        return rss_bytes if rss_bytes <= self._limit_bytes else self._left_bytes
