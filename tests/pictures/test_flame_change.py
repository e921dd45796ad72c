from __future__ import annotations

from nodescope.analysis.flame_node import FlameNode
from nodescope.pictures.colour import LESS, MORE
from nodescope.pictures.drawing import Box
from nodescope.pictures.flame_change import change, draw_flame_change, with_before


def node(name: str, value: int, *children: FlameNode) -> FlameNode:
    return {"name": name, "value": value, "children": list(children)}


NOW = node("all", 1000, node("make", 500, node("read", 500)), node("idle", 500))
BEFORE = node("all", 10_000, node("make", 5000, node("write", 5000)), node("idle", 50_000))


def test_a_path_is_compared_with_itself_in_a_time_as_long() -> None:
    tree = with_before(NOW, BEFORE, 0.1)
    make, idle = tree["children"]
    assert (tree["before"], make["before"], idle["before"]) == (1000, 500, 5000)
    assert make["children"][0]["before"] == 0  # `write` is another path
    assert change(make) == 0
    assert change(idle) < -0.5
    assert change(make["children"][0]) > 0.99
    assert "before" not in NOW


def test_colour_is_the_change_and_width_is_now() -> None:
    drawing = draw_flame_change(with_before(NOW, BEFORE, 0.1), "a change")
    boxes = {shape.label: shape for shape in drawing.shapes if isinstance(shape, Box)}
    assert boxes["make"].fill == MORE[0] == LESS[0]
    assert boxes["make"].width == boxes["idle"].width
    new, shrunk = boxes["read"].fill, boxes["idle"].fill
    assert new is not None
    assert shrunk is not None
    assert new[0] > new[2]
    assert shrunk[0] < shrunk[2]
    assert boxes["read"].title.endswith("none before")
    assert boxes["idle"].title.endswith("5,000.0 in as long before")


def test_one_sample_is_no_change() -> None:
    assert abs(change(with_before(node("new", 1), node("new", 0), 1.0))) <= 0.5
