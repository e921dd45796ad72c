from __future__ import annotations

from dataclasses import replace

import pytest
from tests.remedy.full_plan import DISABLE, FREE, LIMIT, STOP, VALUE, make_plan

from nodescope.records.action import Target
from nodescope.remedy.elsewhere.change import find_lasting_change
from nodescope.remedy.elsewhere.forms import FORMS, render_elsewhere


def test_only_what_lasts_is_shipped() -> None:
    change = find_lasting_change([STOP, DISABLE, LIMIT, VALUE, FREE])
    assert change.off == ("agent.service",)
    assert change.properties == (("db.service", "MemoryMax", "2147483648"),)
    assert change.values == (("net.netfilter.nf_conntrack_max", "524288"),)


def test_a_plan_that_only_frees_has_no_other_form() -> None:
    assert render_elsewhere(make_plan(FREE)) == {}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_names_every_lasting_change(form: str) -> None:
    text = render_elsewhere(make_plan())[form]
    assert "agent.service" in text
    if form != "preset":
        assert "MemoryMax=2147483648" in text
        assert "nf_conntrack_max = 524288" in text
    assert "/dev/shm" not in text


@pytest.mark.parametrize(
    "name",
    ["a b.service", "a\nb.service", "$(reboot).service", "a'.service", 'a".service', "a`.service",
     "{{x}}.service", "a;b.service"],
)  # fmt: skip
def test_a_name_that_could_be_more_than_a_name_is_left_out(name: str) -> None:
    step = replace(STOP, target=Target("unit", name))
    change = find_lasting_change([step, replace(DISABLE, target=Target("unit", name))])
    assert not change
    assert change.left_out == (name,)
    for text in render_elsewhere(make_plan(step, VALUE)).values():
        assert name not in text


def test_a_value_that_could_be_more_is_left_out() -> None:
    step = replace(VALUE, arguments={"value": "1; reboot", "was": "0"})
    assert not find_lasting_change([step])


def test_a_quota_is_written_in_percent() -> None:
    step = replace(LIMIT, arguments={"property": "CPUQuota", "value": "500000"})
    assert find_lasting_change([step]).properties == (("db.service", "CPUQuota", "50%"),)
