"""Models that several tests of the front end use, and a check of models that ONNX Runtime refuses."""

import warnings
from typing import Any

import numpy as np
import onnx

from tests.harness import check, floats, oracle, parsed

X = floats(4, 3, seed=1)


def nested(kinds: tuple[str, ...], inner: str) -> str:
    """Statements that make `y<depth>` of shape [3]: constructs of `kinds`, outermost first, around `inner`.

    `inner` makes `v` from names of the outermost graph. Every level adds a number of its own.
    """
    text, result = inner, "v"
    for depth, kind in reversed(list(enumerate(kinds))):
        name = f"y{depth}"
        if kind == "Loop":
            text = f"""{name} = Loop (n, "", start) <
              body = loop{depth} (int64 i{depth}, bool c{depth}, float[3] s{depth})
              => (bool d{depth}, float[3] t{depth}) {{
              d{depth} = Identity (c{depth}) {text} t{depth} = Add (s{depth}, {result}) }}>"""
        elif kind == "Scan":
            text = f"""{name} = Scan <num_scan_inputs = 1, body = scan{depth} (float[3] s{depth}, float[3] e{depth})
              => (float[3] t{depth}) {{
              {text} p{depth} = Mul (e{depth}, {result}) t{depth} = Add (s{depth}, p{depth}) }}> (start, x)"""
        else:
            text = f"""{name} = If (flag) <
              then_branch = yes{depth} () => (float[3] a{depth}) {{ {text} a{depth} = Add ({result}, start) }},
              else_branch = no{depth} () => (float[3] b{depth}) {{ b{depth} = Mul (start, w) }}>"""
        result = name
    return text


def same_numbers(model: Any, plain: Any, *feeds: Any) -> None:
    """Compare a model that ONNX Runtime refuses with an equivalent one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sets = [{name: np.asarray(value) for name, value in each.items()} for each in feeds]
        check(model, *sets, expected=oracle(plain, sets).values)


def functions(graph: str, *bodies: str, imports: str = '"" : 18', **domains: int) -> onnx.ModelProto:
    """A model with local functions of the domain `local`, each given without its header."""
    headers = "\n".join(f'<domain: "local", opset_import: [{imports}, "local": 1]> {body}' for body in bodies)
    return parsed(f"{graph}\n{headers}", local=1, **domains)
