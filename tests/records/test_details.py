"""Details of events: declared, written as JSON, and read back without trust."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodescope.records.details import (
    Details,
    fields_of,
    format_details,
    parse_details,
    read_details,
)
from nodescope.records.event import Event, details_of_kind, parse_event_details
from nodescope.records.event_details import (
    ContainerExitDetails,
    ContainerLoopDetails,
    MovedInterruptDetails,
    NicDetails,
    NicTransmitDetails,
    UnitChildDetails,
    UnitRunDetails,
)
from nodescope.records.event_kinds import EVENT_KINDS
from nodescope.sources.kernel_log.messages.classify import RULES

CLASSES = {kind.details for kind in EVENT_KINDS.values()}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def test_what_is_not_known_is_left_out() -> None:
    details = ContainerExitDetails(id="a1", exit_status=0, ran_s=1.5)
    assert json.loads(format_details(details) or "") == {"id": "a1", "exit_status": 0, "ran_s": 1.5}
    assert format_details(ContainerExitDetails()) is None
    assert not ContainerExitDetails()


def test_lists_and_counts_come_back_as_they_were() -> None:
    for details in (
        ContainerLoopDetails(exit_statuses=(1, 137)),
        UnitChildDetails(ends={"exit code 4": 12}),
        MovedInterruptDetails(moved_from="3", moved_to="4"),
    ):
        assert parse_details(type(details), format_details(details)) == details


def test_a_name_that_cannot_be_an_attribute_is_kept_in_json() -> None:
    details = MovedInterruptDetails(moved_from="3", moved_to="4")
    assert details.to_json() == {"from": "3", "to": "4"}


def test_older_archives_have_other_names_for_how_a_process_ended() -> None:
    unit = parse_event_details("unit_exit", '{"exit_code": "exited", "exit_status": 3}')
    assert unit == UnitRunDetails(exit_kind="exited", exit_status=3)
    container = parse_event_details("container_exit", '{"id": "a1", "exit_code": 3}')
    assert container == ContainerExitDetails(id="a1", exit_status=3)
    loop = parse_event_details("container_loop", '{"exit_codes": [3]}')
    assert loop == ContainerLoopDetails(exit_statuses=(3,))


@pytest.mark.parametrize(
    ("name", "nonsense"),
    [
        ("queue", "5"), ("queue", True), ("queue", 5.0), ("queue", 1 << 63), ("queue", [5]),
        ("driver", 5), ("resets", 1), ("queues", [1, "2"]), ("queues", 1), ("within_s", "1"),
    ],
)  # fmt: skip
def test_what_has_another_type_is_not_known_and_still_shown(name: str, nonsense: Any) -> None:
    details = read_details(NicDetails, {name: nonsense, "interface": "eth0"})
    assert getattr(details, name) is None
    assert details.interface == "eth0"
    assert details.to_json() == {"interface": "eth0", name: nonsense}


def test_what_is_not_declared_is_kept_aside() -> None:
    details = parse_event_details("nic_reset", '{"driver": "ena", "of_tomorrow": {"a": [1]}}')
    assert details.others == {"of_tomorrow": {"a": [1]}}
    assert details.to_json() == {"driver": "ena", "of_tomorrow": {"a": [1]}}
    unknown = parse_event_details("of_tomorrow", '{"driver": "ena"}')
    assert (type(unknown), unknown.to_json()) == (Details, {"driver": "ena"})


@pytest.mark.parametrize("text", [None, "", "{", "[1]", "5", "[" * 100_000, '{"a": NaN'])
def test_what_is_no_object_says_nothing(text: str | None) -> None:
    assert not parse_event_details("nic_reset", text)


@given(st.dictionaries(st.text(max_size=8) | st.sampled_from(
    [each.key for declared in sorted(CLASSES, key=repr) for each in fields_of(declared)]
), ANYTHING), st.sampled_from(sorted(CLASSES, key=repr)))  # fmt: skip
def test_whatever_is_read_can_be_written_and_read_again(
    document: dict[str, Any], declared: type[Details]
) -> None:
    details = read_details(declared, document)
    shown = details.to_json()
    assert set(shown) <= {each.key for each in fields_of(declared)} | set(document)
    again = read_details(declared, shown)
    assert repr(again) == repr(details)


def test_details_are_asked_for_by_class() -> None:
    event = Event(1, "nic_tx_late", "eth0", "late", details=NicTransmitDetails(queue=5, late=3))
    assert event.get(NicDetails).queue == 5
    assert event.get(NicTransmitDetails).late == 3
    assert event.get(UnitRunDetails) == UnitRunDetails()


def test_a_rule_of_the_kernels_log_finds_only_what_its_kind_declares() -> None:
    for rule in RULES:
        declared = {each.key for each in fields_of(details_of_kind(rule.kind))}
        found = {*rule.pattern.groupindex, *rule.constants} - {"cpu", "about"}
        stored = {re.sub("_kb$", "_bytes", re.sub("_us$", "_ms", name)) for name in found}
        assert stored <= declared, (rule.kind, stored - declared)


def test_no_two_fields_of_a_class_share_a_name() -> None:
    for declared in CLASSES:
        fields = fields_of(declared)
        names = [each.key for each in fields] + [each.formerly for each in fields if each.formerly]
        assert len(names) == len(set(names)), declared
        assert all(each.help for each in fields)
