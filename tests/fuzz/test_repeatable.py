"""A model is converted to the same graph each time, wherever its objects lie in memory.

A set of nodes has the order of their addresses, so a pass that goes through one makes nodes in another order from run
to run, also within one process and with one PYTHONHASHSEED.
"""

import random

import pytest

from mo_loop.api import convert_model
from mo_loop.ops.views import Unsqueeze
from mo_loop.text import parse, to_text
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.runtime.empty_dimensions import AddLeadingDimension
from tests.fuzz.control_flow.generator import generate

SEED = 424242


@pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")
@pytest.mark.parametrize("index", range(16))
def test_a_random_model_is_converted_to_the_same_graph(index: int) -> None:
    model = generate(SEED, index, lists=index % 4 == 0).declared
    draw, kept, texts = random.Random(index), [], set()
    for _ in range(3):
        kept.append([object() for _ in range(draw.randrange(20_000))])  # moves what the conversion makes
        texts.add(to_text(convert_model(model).graph))
    assert len(texts) == 1, f"seed {SEED}, model {index}"


def test_states_get_a_dimension_in_the_order_of_the_results() -> None:
    places = range(6)
    text = "\n".join([
        *(f"%x{i} = Parameter : f32[N,?]" for i in places),
        f"{', '.join(f'%y{i}' for i in places)} = Loop(4, true, {', '.join(f'%x{i}' for i in places)}) {{",
        "  condition: @go", f"  input_map: [{', '.join(f'Merged(%p{i}, @n{i})' for i in places)}]",
        f"  output_map: [{', '.join(f'Final(@n{i})' for i in places)}]", "}", "  body {",
        *(f"    %p{i} = Parameter" for i in places), "    %go = Constant true : boolean[]",
        *(f"    %n{i} = Exp(%p{i})" for i in places), "    Result(%go)", *(f"    Result(%n{i})" for i in places), "  }",
        *(f"Result(%y{i})" for i in places),
    ])
    graph = parse(text)
    Manager([AddLeadingDimension()]).run(graph)
    (loop,) = graph.nodes_with_bodies()
    body = loop.bodies[0]
    made = [node for node in body.ordered() if isinstance(node, Unsqueeze)]
    assert [each.output.only_use.node for each in made] == body.results[1:]
