"""The list of export formats: the command line and the page take it, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from nodescope.cli.main import build_parser
from nodescope.exchange.export.catalogue import (
    EXPORT_FORMATS,
    SAMPLE_FORMATS,
    SampleFormat,
    find_export_format,
)
from nodescope.web.routes import ROUTES


def test_every_name_names_one_format() -> None:
    names = Counter(name for each in EXPORT_FORMATS for name in each.names)
    assert max(names.values()) == 1
    assert all(find_export_format(name) is not None for name in names)
    assert find_export_format("svg") is None


@pytest.mark.parametrize("known", SAMPLE_FORMATS, ids=lambda known: known.name)
def test_both_sides_offer_every_name(known: SampleFormat) -> None:
    parser = build_parser(["export"])
    paths = {route.path for route in ROUTES}
    for name in known.names:
        args = parser.parse_args(["export", name, "--output", "-"])
        assert args.format == known.name
        assert f"/api/export/{name}" in paths


def test_the_list_alone_loads_nothing_heavy() -> None:
    code = "import nodescope.exchange.export.catalogue, sys; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
