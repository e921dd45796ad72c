"""The views of a pegged core: its samples in those seconds, and the cores around it."""

from __future__ import annotations

from nodescope.judgement.pegged_cores import PeggedCore
from nodescope.quantities import SECOND_NS
from nodescope.records.sample_filter import SampleFilter
from nodescope.records.view import Span, View

_BEFORE_NS = 5 * SECOND_NS  # of a hold: how the core was until then


def view_top(held: PeggedCore, by: str) -> View:
    """Return what ran most on a core while it was pegged."""
    return View("top", _span(held), _samples(held), by=by)


def view_flame(held: PeggedCore) -> View:
    """Return the stacks of a core while it was pegged."""
    return View("flame", _span(held), _samples(held))


def view_kernel_flame(held: PeggedCore) -> View:
    """Return the kernel's stacks of a core while it was pegged."""
    kernel = SampleFilter(cpus=frozenset([held.cpu]), mode="kernel")
    return View("flame", _span(held), kernel)


def view_cores(from_ns: int, to_ns: int) -> View:
    """Return the time of all cores in a span, and in some seconds before it."""
    return View("cores", Span(from_ns - _BEFORE_NS, to_ns))


def _span(held: PeggedCore) -> Span:
    return Span(held.from_ns, held.to_ns)


def _samples(held: PeggedCore) -> SampleFilter:
    return SampleFilter(cpus=frozenset([held.cpu]))
