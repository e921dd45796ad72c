"""Loops of containers, by name and by image."""

from __future__ import annotations

from collections.abc import Iterable

from nodescope.judgement.container_loops import LoopWatch, find_loops
from nodescope.judgement.loop_rules import CONTAINER_WITHIN_NS
from nodescope.quantities import MINUTE_NS, SECOND_NS
from nodescope.sources.containers.container import Container, ContainerHappening, HappeningKind


def run(
    at_s: float, identifier: str, code: int | None, *, name: str = "agent", image: str = "ecs"
) -> Iterable[ContainerHappening]:
    """A run of two seconds."""
    container = Container(
        "docker", identifier, name=name, image=image, exit_status=code, cgroup_parent="/docker"
    )
    at_ns = int(at_s * SECOND_NS)
    yield ContainerHappening(HappeningKind.STARTED, at_ns, container)
    yield ContainerHappening(HappeningKind.EXITED, at_ns + 2 * SECOND_NS, container, 2 * SECOND_NS)


def runs(*each: Iterable[ContainerHappening]) -> list[ContainerHappening]:
    return [happening for run_ in each for happening in run_]


def test_new_ids_under_one_name_that_fail_are_a_loop() -> None:
    happened = runs(*(run(10 * n, f"id{n}", 5) for n in range(4)))
    (loop,) = find_loops(happened, 60 * SECOND_NS)
    assert (loop.name, loop.times, loop.ids, loop.new_ids) == ("agent", 4, 4, True)
    assert (loop.exit_statuses, loop.failures) == ((5,), 4)
    assert loop.per_minute == 6.0
    assert loop.cgroup_parent == "/docker"
    assert loop.describe() == "4 starts, 4 ids under one name, 6.0 per minute, exit code 5"


def test_one_id_started_again_and_again_is_a_loop_whatever_its_code() -> None:
    (loop,) = find_loops(runs(*(run(10 * n, "same", 0) for n in range(3))), 60 * SECOND_NS)
    assert not loop.new_ids
    assert "restarted under one id" in loop.describe()


def test_a_job_that_is_run_again_and_ends_well_is_no_loop() -> None:
    happened = runs(*(run(60 * n, f"id{n}", 0) for n in range(5)))
    assert find_loops(happened, 300 * SECOND_NS) == []


def test_a_name_that_is_always_made_anew_is_one_all_the_same() -> None:
    happened = runs(*(run(10 * n, f"id{n}", 0) for n in range(6)))
    assert len(find_loops(happened, 60 * SECOND_NS)) == 1


def test_somebody_who_stops_and_starts_it_makes_no_loop() -> None:
    happened = runs(*(run(60 * n, f"id{n}", 143) for n in range(3)))
    assert find_loops(happened, 200 * SECOND_NS) == []


def test_a_loop_of_long_ago_is_none_now() -> None:
    happened = runs(*(run(10 * n, f"id{n}", 5) for n in range(4)))
    assert find_loops(happened, CONTAINER_WITHIN_NS + 60 * SECOND_NS) == []


def test_made_up_names_are_one_image() -> None:
    names = ("brave_hopper", "lucid_turing2", "happy_noether", "zen_gauss")
    happened = runs(*(run(10 * n, f"id{n}", 1, name=name) for n, name in enumerate(names)))
    (loop,) = find_loops(happened, 60 * SECOND_NS)
    assert (loop.name, loop.by_image, loop.ids) == ("ecs", True, 4)
    assert "under one image" in loop.describe()


def test_a_name_that_looks_made_up_is_still_a_name() -> None:
    happened = runs(*(run(10 * n, f"id{n}", 1, name="web_app") for n in range(4)))
    (loop,) = find_loops(happened, 60 * SECOND_NS)
    assert (loop.name, loop.by_image) == ("web_app", False)


def test_a_loop_is_said_once_while_it_lasts_and_again_after_a_rest() -> None:
    watch = LoopWatch()
    said = []
    for n in range(100):
        said += [watch.take(each) for each in run(60 * n, f"id{n}", 5)]
    assert [loop.times for loop in said if loop] == [3]
    late = 100 * MINUTE_NS // SECOND_NS + CONTAINER_WITHIN_NS // SECOND_NS
    again = [watch.take(each) for n in range(3) for each in run(late + n, f"late{n}", 5)]
    assert [loop.times for loop in again if loop] == [3]


def test_starts_without_known_ends_count() -> None:
    pod = [
        ContainerHappening(
            HappeningKind.STARTED, n * SECOND_NS, Container("kubelet", "u/app", "app", restarts=n)
        )
        for n in range(4)
    ]
    (loop,) = find_loops(pod, 10 * SECOND_NS)
    assert (loop.times, loop.exit_statuses) == (4, ())


def test_many_names_are_forgotten_not_kept() -> None:
    watch = LoopWatch()
    for n in range(10_000):
        for each in run(n, f"id{n}", 0, name=f"name{n}", image="x"):
            watch.take(each)
    assert len(watch._tracks) <= 4096
