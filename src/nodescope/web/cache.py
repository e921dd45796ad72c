"""A cache of results that stay true: bounded by bytes, least recently used go first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Values by key, for several threads; each key is computed by one of them at a time."""

    def __init__(self, most_bytes: int, size: Callable[[Value], int]) -> None:
        self._most = most_bytes
        self._size = size
        self._held: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Event] = {}
        self._lock = threading.Lock()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._held

    def find(self, key: Hashable) -> Value | None:
        """Return the cached value, None if there is none."""
        with self._lock:
            value = self._held.get(key)
            if value is not None:
                self._held.move_to_end(key)
            return value

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the cached value, or make it."""
        mine = threading.Event()
        while True:
            with self._lock:
                if key in self._held:
                    self._held.move_to_end(key)
                    return self._held[key]
                waiting = self._making.setdefault(key, mine)
            if waiting is mine:
                break
            waiting.wait()  # then look again: whoever made it may have failed
        try:
            value = make()
            self.put(key, value)
            return value
        finally:
            with self._lock:
                del self._making[key]
            mine.set()

    def put(self, key: Hashable, value: Value) -> None:
        """Hold a value, and let go of what no longer fits."""
        size = self._size(value)
        if size > self._most // 2:
            return
        with self._lock:
            if key in self._held:
                self.bytes -= self._size(self._held.pop(key))
            self._held[key] = value
            self.bytes += size
            while self.bytes > self._most:
                _, old = self._held.popitem(last=False)
                self.bytes -= self._size(old)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()
            self.bytes = 0
