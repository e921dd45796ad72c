from __future__ import annotations

import threading

import pytest

from nodescope.web.cache import Cache


def make(most: int = 100) -> Cache[bytes]:
    return Cache(most, len)


def test_the_longest_unused_goes_first() -> None:
    cache = make()
    for key in "abcd":
        cache.put(key, b"x" * 25)
    assert cache.find("a") is not None
    cache.put("e", b"x" * 25)
    assert cache.find("b") is None
    assert cache.find("a") is not None
    assert cache.bytes == 100


def test_what_is_too_large_is_not_held() -> None:
    cache = make()
    assert cache.get("a", lambda: b"x" * 60) == b"x" * 60
    assert "a" not in cache
    assert cache.bytes == 0


def test_putting_again_replaces() -> None:
    cache = make()
    cache.put("a", b"x" * 10)
    cache.put("a", b"x" * 30)
    assert cache.bytes == 30
    assert len(cache) == 1


def test_each_key_is_made_by_one_thread() -> None:
    cache, made, begun, go = make(), [], threading.Event(), threading.Event()

    def slowly() -> bytes:
        made.append(1)
        begun.set()
        go.wait(60)
        return b"x"

    threads = [threading.Thread(target=cache.get, args=("a", slowly)) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(made) == 1


def test_a_failure_is_not_held() -> None:
    cache = make()

    def fail() -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get("a", fail)
    assert cache.get("a", lambda: b"x") == b"x"
