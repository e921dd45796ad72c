"""A container of a pod that is killed again and again, by the CRI plugin of a real containerd."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.container_daemons import container_host
from tests.cri_plugin import cri_plugin
from tests.waiting import wait_for

from nodescope.judgement.containers import ContainerVerdict, audit_containers
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.containers import make
from nodescope.records.event import Event
from nodescope.records.event_details import ContainerDetails, ContainerLoopDetails
from nodescope.sources.containers.runtimes import Runtimes
from nodescope.sources.places import Places

pytestmark = [
    pytest.mark.live,
    pytest.mark.beside,
    pytest.mark.root,
    pytest.mark.timeout(1200),
    pytest.mark.debian("docker.io", "containerd", "busybox-static", "iproute2"),
]
SUBJECT = "shop/greedy-0/app"


def _is_over(count_ends: Callable[[], int], attempt: int) -> bool:
    return count_ends() > attempt


def _audit_live(places: Places) -> list[ContainerVerdict]:
    """Return what an audit without any recording says of it."""
    runtimes = Runtimes(places)
    try:
        runtimes.poll(time.time_ns())
        found = audit_containers(list(runtimes.containers.values()), [], time.time_ns())
    finally:
        runtimes.close()
    return [each for each in found if each.name == SUBJECT]


def test_the_recorder_and_a_live_audit_see_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    events: list[Event] = []
    with (
        container_host(tmp_path) as host,
        cri_plugin(host, tmp_path, "shop", "greedy-0", str(uuid.uuid4())) as plugin,
    ):
        monkeypatch.setenv("CONTAINERD_ADDRESS", str(plugin.socket))
        observer = make(Setting(host.places, tmp_path))

        def count_ends() -> int:
            events.extend(observer.observe(time.monotonic_ns()).events)
            seen = [each for each in events if each.kind == "container_exit"]
            return sum(each.subject == SUBJECT for each in seen)

        assert count_ends() == 0
        earlier = None
        for attempt in range(3):
            if earlier is not None:
                plugin.remove(earlier)
            earlier = plugin.start(attempt, "/bin/sh", "-c", "sleep 1; kill -9 $$")
            wait_for(partial(_is_over, count_ends, attempt), f"the end of {attempt}", 120)
        observer.close()
        # The plugin writes how it ended a moment after the task is gone.
        (verdict,) = wait_for(lambda: _audit_live(host.places), "a verdict", 60)
    (loop,) = (each for each in events if each.kind == "container_loop")
    assert loop.subject == SUBJECT
    assert loop.get(ContainerLoopDetails).exit_statuses == (137,)
    starts = [each for each in events if each.kind in ("container_started", "container_restart")]
    counted = [each.get(ContainerDetails).restarts for each in starts if each.subject == SUBJECT]
    assert counted == [0, 1, 2]
    assert (verdict.verdict, verdict.evidence["exit_status"]) == ("looping", 137)
