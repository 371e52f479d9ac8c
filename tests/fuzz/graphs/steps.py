"""One step of a drawing: a layer that fits the value that it reads. A layer that does not fit adds nothing."""

from collections.abc import Callable

from tests.fuzz.graphs import computed, elementwise, integers, layers, movement, reductions
from tests.fuzz.graphs.graph import FLOAT, Graph, Value

Layer = Callable[[Graph, Value], None]
ANY: tuple[tuple[int, Layer], ...] = (*elementwise.LAYERS, *movement.LAYERS, *reductions.LAYERS, *computed.LAYERS,
                                      *layers.PRODUCTS)


def step(graph: Graph) -> Layer:
    """Add a layer after a value; which one it was."""
    value = graph.pick()
    if value.kind != FLOAT:
        chosen: tuple[tuple[int, Layer], ...] = integers.LAYERS
    else:
        chosen = ANY + (layers.IMAGES if value.rank == 4 else layers.SEQUENCES if value.rank == 3 else ())
    weights = [weight for weight, _ in chosen]
    (layer,) = graph.choices.choices([layer for _, layer in chosen], weights)
    layer(graph, value)
    return layer
