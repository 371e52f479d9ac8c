"""The spelling of --transform."""

from typing import Any

import pytest

from mo_loop.api import convert_model
from mo_loop.conversion import Conversion
from mo_loop.conversion_info import conversion_info
from mo_loop.errors import ConversionWarning, UsageError
from mo_loop.options import ConvertOptions
from mo_loop.transformations import Transformation, transformations
from tests.harness import parsed, raised, without


@pytest.mark.parametrize(("given", "expected"), [
    (None, []),
    ("", []),
    ("LowLatency2", [("LowLatency2", {})]),
    ("LowLatency2[use_const_initializer=False]", [("LowLatency2", {"use_const_initializer": False})]),
    ("LowLatency2[use_const_initializer=false]", [("LowLatency2", {"use_const_initializer": False})]),
    (
        "LowLatency2[use_const_initializer=True;sequence_length=1]",
        [("LowLatency2", {"use_const_initializer": True, "sequence_length": 1})]),
    (
        " MakeStateful[ param_res_names= {'h0':'hN', 'c,[0':'c]N'} ] , LowLatency2 ",
        [("MakeStateful", {"param_res_names": {"h0": "hN", "c,[0": "c]N"}}), ("LowLatency2", {})]),
    (("LowLatency2", {"sequence_length": 1}), [("LowLatency2", {"sequence_length": 1})]),
    (
        ["LowLatency2", ("MakeStateful", {"param_res_names": {"a": "b"}})],
        [("LowLatency2", {}), ("MakeStateful", {"param_res_names": {"a": "b"}})]),
])
def test_forms(given: Any, expected: list[tuple[str, dict[str, Any]]]) -> None:
    assert [(each.name, dict(each.arguments)) for each in transformations(given)] == expected


@pytest.mark.parametrize(("given", "said"), [
    ("Pruning", "Pruning is not available"), ("LowLatency", "'LowLatency'"),
    ("LowLatency2,LowLatency2", "twice"), ("LowLatency2[use_const_initializer=False", "open"),
    ("LowLatency2[use_const_initializer=False]]", "] is missing|not a value|names"),
    ("LowLatency2[speed=1]", "no argument 'speed'"),
    ("LowLatency2[use_const_initializer=1]", "use_const_initializer is 1"),
    ("LowLatency2[sequence_length=True]", "sequence_length is True"),
    ("LowLatency2[use_const_initializer]", "not key=value"),
    ("LowLatency2[use_const_initializer=open('x')]", "not a value"),
    ("MakeStateful[param_res_names={'a':1}]", "names to names"),
    ("MakeStateful[param_res_names=['a']]", "it is a dict"),
    ("MakeStateful[param_res_names={['a']:'b'}]", "not a value"),
    ("MakeStateful[param_res_names={{'a'}}]", "not a value"),
    ("MakeStateful[param_res_names={'a':'b','a':'c'}]", "not a value"),
    ("MakeStateful[param_res_names=None]", "param_res_names is None"),
    (f"MakeStateful[param_res_names={'[' * 5000}{']' * 5000}]", "not a value"),
    (f"MakeStateful[param_res_names={'1+' * 5000}1j]", "not a value"),
    (f"MakeStateful[param_res_names={10 ** 4999:#x}]", "a value of type int"),
    (f"LowLatency2[sequence_length={10 ** 4999:#x}]", "a value of type int"),
    ("LowLatency2[sequence_length=9223372036854775808]", "sequence_length is 9223372036854775808"),
    ("LowLatency2[sequence_length=1,sequence_length=2]", "'sequence_length' twice"),
    (",", "names nothing"), ("x" * 100_000, "--transform names 'xxx"), (7, "transform is 7"),
    ([["LowLatency2"]], "transform is ['LowLatency2']"),
])
def test_refused(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("[", r"\[").replace("]", r"\]").replace("(", r"\(")) as error:
        transformations(given)
    assert len(str(error.value)) < 1000


def test_the_rt_info_has_the_spelling_of_the_option() -> None:
    text = "LowLatency2[use_const_initializer=False;sequence_length=1],MakeStateful[param_res_names={'a': 'b'}]"
    parameters = conversion_info(ConvertOptions(transform=text))["conversion_parameters"]
    assert parameters == {"transform": text} and transformations(parameters["transform"]) == transformations(text)


def test_options_without_effect() -> None:
    for given in ({"beam_idx": True}, {"stateful_pairs": {"a": "b"}}):
        with pytest.raises(UsageError, match="no effect"):
            ConvertOptions(**given)  # type: ignore[arg-type]


def test_a_transformation_is_its_text() -> None:
    assert str(Transformation("LowLatency2", {"sequence_length": 1})) == "LowLatency2[sequence_length=1]"


STEP = """step (float[1,2] x, float[1,3] h0) => (float[1,2] y, float[1,3] hN) {
  s = ReduceSum <keepdims = 1> (x) hN = Add (h0, s) t = ReduceSum <keepdims = 1> (hN) y = Mul (x, t)
}"""


def interface(**options: Any) -> tuple[list[str], list[str]]:
    model = convert_model(parsed(STEP, 17), **options)
    return [each.name for each in model.inputs], [each.name for each in model.outputs]


@pytest.mark.parametrize("given", ["MakeStateful", ("MakeStateful", {}), {"stateful": True}])
def test_make_stateful_without_pairs_finds_them(given: Any) -> None:
    """It did nothing, without a message."""
    options = given if isinstance(given, dict) else {"transform": given}
    assert interface(**options) == (["x"], ["y"])


def test_make_stateful_with_an_empty_dict_is_refused() -> None:
    raised(UsageError, ConvertOptions, transform="MakeStateful[param_res_names={}]", match="no effect")


@pytest.mark.parametrize("options, said", [
    ({"transform": "LowLatency2,MakeStateful"}, "--transform LowLatency2 has no effect"),
    ({"stateful": True, "stateful_pairs": {"h0": ""}}, "--stateful has no effect"),
    ({"transform": "MakeStateful", "stateful_pairs": {"h0": ""}}, "--transform MakeStateful has no effect"),
    ({"unroll": 4}, "--unroll 4 has no effect"),
])
def test_an_option_that_changes_nothing(options: dict[str, Any], said: str) -> None:
    """An error for one model, as with all options; a warning for a model of many that have the options."""
    error = raised(UsageError, interface, **options, match=said)
    assert error.code == "ML201" and error.why and "omit it" in error.hint
    with pytest.warns(ConversionWarning, match=said) as record:
        Conversion(ConvertOptions(**options), is_one_of_many=True).run(parsed(STEP, 17))
    assert [each.message.code for each in record] == ["ML523"]  # type: ignore[union-attr]


def test_an_option_whose_pass_does_not_run() -> None:
    config = without("UnrollLoops")
    assert interface(unroll=4, config=config) == (["x", "h0"], ["y", "hN"])
    assert interface(unroll=4, stop_after="ConstantFolding")[0] == ["x", "h0"]


@pytest.mark.parametrize("given", [["h0=hN"], "h0=hN", [("h0", "hN")], {"h0": None}, {0: "hN"}])
def test_pairs_are_a_mapping_of_names(given: Any) -> None:
    """They were a TypeError."""
    with pytest.raises(UsageError, match="stateful_pairs is") as error:
        convert_model(parsed(STEP, 17), stateful=True, stateful_pairs=given)
    assert error.value.code == "ML201" and '{"h0": "hN"}' in error.value.hint


@pytest.mark.parametrize("name", ["h0", "hN"])
def test_a_state_has_no_new_name(name: str) -> None:
    """It was ignored, because a state is neither an input nor an output."""
    with pytest.raises(UsageError, match=f"--rename {name}=hidden has no effect") as error:
        interface(stateful=True, rename={name: "hidden"})
    assert error.value.code == "ML202" and interface(stateful=True, rename={"x": "seen"}) == (["seen"], ["y"])
    assert interface(rename={name: "hidden"})[0][0] == "x"
