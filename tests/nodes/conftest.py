"""A recorded node to read, by its name."""

from __future__ import annotations

import pytest
from tests.nodes.recorded import Node, put_node


@pytest.fixture(scope="session")
def nodes() -> dict[str, Node]:
    """Those that were asked for: nothing here changes them."""
    return {}


@pytest.fixture
def node(
    request: pytest.FixtureRequest,
    nodes: dict[str, Node],
    tmp_path_factory: pytest.TempPathFactory,
) -> Node:
    """The node that `@pytest.mark.parametrize("node", NAMES, indirect=True)` names."""
    name: str = request.param
    if name not in nodes:
        nodes[name] = put_node(name, tmp_path_factory.mktemp(name))
    return nodes[name]
