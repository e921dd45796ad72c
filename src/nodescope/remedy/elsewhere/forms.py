"""Every form in which a plan's lasting change can be written, by name."""

from __future__ import annotations

from collections.abc import Callable

from nodescope.remedy.elsewhere.change import LastingChange, find_lasting_change
from nodescope.remedy.elsewhere.configuration import (
    render_ansible,
    render_cloud_init,
    render_drop_ins,
    render_preset,
)
from nodescope.remedy.elsewhere.images import render_dockerfile, render_packer
from nodescope.remedy.plan import Plan

FORMS: dict[str, Callable[[LastingChange], str]] = {
    "preset": render_preset,
    "drop-in": render_drop_ins,
    "cloud-init": render_cloud_init,
    "ansible": render_ansible,
    "packer": render_packer,
    "dockerfile": render_dockerfile,
}


def render_elsewhere(plan: Plan) -> dict[str, str]:
    """Return the lasting part of a plan in every form that has something to say."""
    change = find_lasting_change(plan.steps)
    if not change:
        return {}
    return {form: text for form, render in FORMS.items() if (text := render(change))}
