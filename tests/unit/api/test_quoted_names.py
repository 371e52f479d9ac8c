"""Names with commas, brackets, = and quotes in the options of the command line."""

from pathlib import Path

import onnx
import pytest
from click.testing import CliRunner
from onnx import helper

from mo_loop import read_model
from mo_loop.cli import main
from mo_loop.cli.conversion_options import frozen, names, renamed, state_pairs
from mo_loop.frontend.input_text import parse_inputs
from mo_loop.preprocessing import BRACKETS, PARENTHESES, PerInput

ODD = ["a,b", "c[0,1]", "d=(e)", "it's", "f{g}", 'h"i']


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("quote", ["'", '"'])
def test_odd_names(name: str, quote: str) -> None:
    if quote in name:
        return
    quoted = f"{quote}{name}{quote}"
    assert names(f"x,{quoted} , y") == ["x", name, "y"]
    assert list(renamed((f"{quoted}=new", f"old={quoted}"))) == [(name, "new"), ("old", name)]
    assert list(state_pairs((f"{quoted}={quoted}", f"{quoted[:-1]}2{quote}="))) == [(name, name), (f"{name}2", "")]
    assert list(frozen((f"{quoted}=[1,2]",))) == [(name, [1, 2])]
    first, second, third = parse_inputs(f"x[1,2],{quoted}[3,4]{{f16}},{quoted}->7")
    assert (first.name, second.name, second.shape, third.name, third.value) == ("x", name, (3, 4), name, 7)
    assert PerInput.of(f"{quoted}[1,2],x(3)", BRACKETS, str, "--mean-values").entries == ((name, "1,2"), ("x", "3"))
    assert PerInput.of(f"x(nc),{quoted}(nc->cn)", PARENTHESES, str, "--layout").entries[1] == (name, "nc->cn")


def test_apostrophes_within_names_are_no_quotes() -> None:
    assert names("it's,don't") == ["it's", "don't"] and list(renamed(("it's=don't",))) == [("it's", "don't")]


def test_a_model_with_odd_names(tmp_path: Path) -> None:
    nodes = [helper.make_node("Neg", ["a,b"], ["c[0]"]), helper.make_node("Abs", ["c[0]"], ["d=e"])]
    ports = [helper.make_tensor_value_info(name, 1, ["N", 3]) for name in ("a,b", "d=e")]
    made = helper.make_model(helper.make_graph(nodes, "g", ports[:1], ports[1:]), ir_version=9)
    onnx.save(made, tmp_path / "m.onnx")
    options = ["--output", "'c[0]',\"d=e\"", "--input", "'a,b'[2,3]", "--rename", "'d=e'=last"]
    options += ["--mean-values", "'a,b'[1]"]
    done = CliRunner().invoke(main, ["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.xml"), *options])
    assert done.exit_code == 0, done.output
    model = read_model(tmp_path / "m.xml")
    assert [str(each.output.type) for each in model.graph.parameters] == ["f32[2,3]"]
    assert model.outputs == ["c[0]", "last"]
