"""A comparison in the terminal: each fact once, by process, with a word for how sure it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodescope.analysis.compare import Change, Comparison, Method
from nodescope.archive.feature_counts import Kind
from nodescope.pictures.compare import certainty_of, render_comparison
from nodescope.pictures.terminal import Terminal

PLAIN = Terminal()

ONE = Change(
    kind="comm", name="kubelet", window=100, baseline=10.0, window_share=0.2, baseline_share=0.02,
    p=1e-9, q=1e-8, as_extreme=0, status="grown", flagged=True,
)  # fmt: skip


def comparison(
    *changes: Change, windows: int = 360, method: Method = "negative binomial"
) -> Comparison:
    return Comparison(
        changes=list(changes), samples=500, baseline_samples=500.0, windows=windows,
        window_ns=5_000_000_000, method=method, tests=10, recorded_ratio=1.0, notes=[],
    )  # fmt: skip


def of(kind: Kind, name: str, share: float = 0.2) -> Change:
    return replace(ONE, kind=kind, name=name, window_share=share)


def names(text: str) -> list[str]:
    return [line[34:] for line in text.splitlines()[4:]]


@pytest.mark.parametrize(
    ("change", "windows", "method", "said"),
    [
        (ONE, 360, "negative binomial", "certain"),
        (replace(ONE, q=0.01), 360, "negative binomial", "likely"),
        (replace(ONE, as_extreme=2), 360, "negative binomial", "likely"),
        (ONE, 60, "negative binomial", "likely"),
        (ONE, 5, "exact conditional", "hint"),
        (replace(ONE, flagged=False), 360, "negative binomial", "hint"),
    ],
)
def test_how_sure_is_one_of_three_words(
    change: Change, windows: int, method: Method, said: str
) -> None:
    assert certainty_of(change, comparison(change, windows=windows, method=method)) == said


def test_what_a_process_did_is_told_once() -> None:
    text = render_comparison(
        comparison(
            ONE, of("core", "cpu 39;kubelet"), of("function", "kubelet;mem_cgroup_iter"),
            of("kernel", "mem_cgroup_iter"),
        ),
        PLAIN,
    )  # fmt: skip
    assert names(text) == ["kubelet  certain", "  on cpu 39", "  in mem_cgroup_iter"]


def test_a_kernel_function_of_many_processes_stands_by_itself() -> None:
    text = render_comparison(comparison(ONE, of("kernel", "shrink_node", 0.4)), PLAIN)
    assert "shrink_node, in any process  certain" in names(text)


def test_what_is_left_out_is_counted() -> None:
    text = render_comparison(comparison(ONE, of("comm", "java"), of("comm", "sh")), PLAIN, 1)
    assert text.splitlines()[-1] == "… 2 more: --limit 0 shows all"


def test_what_is_large_but_not_certain_is_in_the_headline() -> None:
    """`Nothing differs` stood above `grown 25.9 % 0.4 % ×65`, which no baseline window had."""
    hint = replace(ONE, name="trainburn", flagged=False, p=0.00085, q=0.3)
    text = render_comparison(comparison(hint, windows=26), PLAIN)
    assert text.splitlines()[0] == (
        "Nothing is certain with 26 baseline windows; the largest difference: trainburn had "
        "20.0 % of the samples instead of 2.0 % (×10): 0 of 26 baseline windows had as much."
    )
    usual = replace(hint, as_extreme=1)
    assert render_comparison(comparison(usual, windows=26), PLAIN).startswith("Nothing differs")


def test_the_baselines_samples_are_of_as_much_time_as_the_window() -> None:
    """Two cores at 97 Hz had `3,652 on average in 25 windows of 1 s`: it was for 19 s."""
    second = render_comparison(comparison(ONE), PLAIN).splitlines()[1]
    assert "500 in as much baseline time (360 windows of 5 s)" in second
