"""`nodescope network`, from a recording of a synthetic host and of this machine now."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.analysis.conftest import HandClock
from tests.sources.network.synthetic_ena import QUEUES, SyntheticEthtool, SyntheticHost

from nodescope.archive.writer import ArchiveWriter
from nodescope.quantities import SECOND_NS
from nodescope.recorder.event_log import EventLog
from nodescope.recorder.observer import Setting
from nodescope.recorder.observers.nics import NicsObserver
from nodescope.recorder.observers.softnet import make
from nodescope.records.columns import columns_by_table
from nodescope.records.event import Event
from nodescope.sources.places import Places

Nodescope = Callable[..., Any]
HELD = 13  # the queue whose core is held


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two segments of twenty seconds; in the second, core 39 is held for eight."""
    root, archive = tmp_path_factory.mktemp("node"), tmp_path_factory.mktemp("archive")
    host, ethtool, clock = SyntheticHost(root), SyntheticEthtool(), HandClock()
    log = EventLog(lambda message: None)
    setting = Setting(Places(root=root), root)
    packets, devices = make(setting), NicsObserver(setting, ethtool)
    with ArchiveWriter.open(
        archive, node={"name": "ena", "boot_id": "b"}, clock=clock, tick_ns=1000
    ) as writer:
        for second in range(40):
            held = 25 <= second < 33
            for queue in range(QUEUES):
                if not (held and queue == HELD):
                    host.serve(queue)
            host.pass_time(held=host.core_of(HELD) if held else None)
            if second == 33:
                ethtool.values |= {"total_resets": 1, "suspected_poll_starvation": 1}
                (root / f"sys/class/net/ens5/queues/tx-{HELD}/tx_timeout").write_text("1\n")
                reset = Event(clock.now, "nic_reset", "ens5", "Trigger reset is on")
                log.add(reset)
                setting.log_reports.tell(clock.now, reset.kind, (reset.subject,))
            host.write()
            asked = [packets.observe(clock.now)]
            if second % 10 == 0 or second == 39:
                asked.append(devices.observe(clock.now))
            for said in asked:
                for table, columns in columns_by_table(said.rows).items():
                    writer.append(table, columns)
                for event in said.events:
                    log.add(event)
            for table, columns in log.take_new_rows().items():
                writer.append(table, columns)
            writer.flush()
            clock.now += SECOND_NS
            if second == 19:
                writer.seal_segment()
                packets.begin_segment()
                devices.begin_segment()
    packets.close()
    return archive


def test_devices_queues_cores_and_what_went_wrong(nodescope: Nodescope, recording: Path) -> None:
    document = json.loads(nodescope("network", "--archive", recording, "--json").out)
    (nic,) = document["nics"]
    assert (nic["nic"], nic["driver"], nic["version"]) == ("ens5", "ena", "2.10.0g")
    assert (nic["resets"], nic["tx_timeouts"], len(nic["queues"])) == (1, 1, QUEUES)
    assert nic["trouble"] == {"total_resets": 1, "suspected_poll_starvation": 1}
    queue = nic["queues"][HELD]
    assert (queue["irq"], queue["effective"], queue["tx_timeouts"]) == (114, "39", 1)
    assert queue["interrupts"] == {"39": 310}  # of 39 seconds, 8 without
    starved = {core["cpu"]: core["starved_ns"] for core in document["cores"] if core["starved_ns"]}
    assert starved == {39: 7 * SECOND_NS}
    kinds = {event["kind"] for event in document["events"]}
    assert {"core_starved", "nic_reset", "nic_stat_jump", "nic_poll_starved"} <= kinds


def test_a_window_counts_its_own_alone(nodescope: Nodescope, recording: Path) -> None:
    out = nodescope("network", "--archive", recording, "--from", "+0s", "--to", "+15s", "--json")
    document = json.loads(out.out)
    (nic,) = document["nics"]
    assert (nic["resets"], nic["trouble"]) == (0, {})
    assert nic["queues"][HELD]["interrupts"] == {"39": 140}
    assert not any(core["starved_ns"] for core in document["cores"])


def test_a_person_sees_the_starved_core_first(nodescope: Nodescope, recording: Path) -> None:
    out = nodescope("network", "--archive", recording, "--limit", "3").out
    assert out.startswith("network of ena · ")
    assert "1 transmit timeouts, 1 resets" in out
    assert "the driver counted: suspected_poll_starvation +1, total_resets +1" in out
    lines = out.splitlines()
    first = lines[lines.index("cores") + 2]
    assert first.split() == ["39", "310", "310", "0", "0", "7", "s", "ens5", "13"]
    assert "… 29 more: --limit 0 shows all" in out
    assert "core 39 served no packets for 7.0 s" in out


def test_options_that_contradict_each_other(nodescope: Nodescope) -> None:
    assert nodescope("network", "--for", "3s").code == 2
    assert nodescope("network", "--now", "--last", "5m").code == 2


@pytest.mark.live
def test_this_machine_now(nodescope: Nodescope) -> None:
    answer = nodescope("network", "--now", "--for", "100ms", "--json")
    assert answer.code == 0
    document = json.loads(answer.out)
    assert {"nics", "cores", "events"} == set(document)
    assert len(document["cores"]) >= 1
    assert nodescope("network", "--now", "--for", "10ms").code == 0
