"""Reading a few parts ahead: decoding a table leaves the interpreter's lock, so that another
thread reads the next part while this one is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from nodescope.recording.part import Part

if TYPE_CHECKING:
    from concurrent.futures import Future

Found = TypeVar("Found")
AHEAD = 4  # parts: so many are in memory at once


def read_ahead(
    parts: Iterable[Part], read: Callable[[Part], Found]
) -> Iterator[tuple[Part, Found]]:
    """Yield each part with what `read` returns of it, in order."""
    every = list(parts)
    if len(every) < 2:
        yield from ((part, read(part)) for part in every)
        return
    from concurrent.futures import ThreadPoolExecutor  # takes 8 ms, for many parts alone

    waiting: deque[tuple[Part, Future[Found]]] = deque()
    with ThreadPoolExecutor(1) as pool:
        try:
            for part in every:
                waiting.append((part, pool.submit(read, part)))
                if len(waiting) > AHEAD:
                    first, found = waiting.popleft()
                    yield first, found.result()
            while waiting:
                first, found = waiting.popleft()
                yield first, found.result()
        finally:
            pool.shutdown(cancel_futures=True)
