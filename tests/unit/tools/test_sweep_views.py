"""The graphs of the sweep of views; the sweep itself needs the device."""

from tools.sweep_views import OPERATIONS, graphs, joined


def test_every_graph_can_be_read() -> None:
    assert all(joined(graphs(text, shape).values()).results for _, text, shapes in OPERATIONS for shape in shapes)
