"""A recorded node to read, by its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nodes.recorded import Node, put_node


@pytest.fixture
def node(request: pytest.FixtureRequest, tmp_path: Path) -> Node:
    """The node that `@pytest.mark.parametrize("node", NAMES, indirect=True)` names."""
    return put_node(request.param, tmp_path)
