from __future__ import annotations

from collections import Counter

from nodescope.judgement.core_occupants import (
    ALL_BUT_HOUSEKEEPING,
    MOST_OF_IT,
    Occupants,
    describe_processes,
)


def test_who_has_most_is_named_with_the_share() -> None:
    main = Occupants(Counter({"kubelet": 93, "ksoftirqd": 7})).find_main(ALL_BUT_HOUSEKEEPING)
    assert main == ("kubelet", 93, 0.93)


def test_nobody_in_particular_had_a_core_that_many_share() -> None:
    shared = Occupants(Counter({"a": 40, "b": 35, "c": 25}))
    assert shared.find_main(MOST_OF_IT) is None
    assert shared.total == 100


def test_without_samples_nobody_is_named() -> None:
    assert Occupants[str]().find_main() is None


def test_samples_are_counted_as_they_come() -> None:
    threads: Occupants[int] = Occupants()
    threads.add([77, 5], [3, 1])
    threads.add([77], [4])
    assert threads.find_main() == (77, 7, 0.875)


def test_a_process_is_named_only_if_it_was_one() -> None:
    one = Occupants(Counter({812: 95, 900: 5}))
    assert describe_processes("kubelet", one) == "kubelet (812)"
    many = Occupants(Counter({812: 50, 900: 30, 901: 20}))
    assert describe_processes("sh", many) == "3 processes named sh"
    assert describe_processes("sh", Occupants()) == "sh"
