"""mo_loop.transforms.states.pairing: which outputs continue which inputs."""

import tracemalloc
from typing import Any

import pytest

from mo_loop import ops
from mo_loop.errors import UnsupportedError, UsageError
from mo_loop.text import parse
from mo_loop.transforms.states.make_stateful import FuseStatefulAttention, MakeStateful
from mo_loop.transforms.states.pairing import find_pairs, is_next
from tests.cases import read_cases
from tests.harness import raised
from tests.texts import texts

TEXTS = texts(__file__)


def found(text: str, given: Any = ()) -> dict[str, tuple[str, int | None, str]]:
    """The pairs of a graph: input -> output, growing axis, strength."""
    pairs = find_pairs(parse(text), given)
    pairs.require_clear()
    return {pair.input: (pair.output, pair.growing, pair.strength) for pair in pairs.found}


def evidence(text: str) -> list[str]:
    return [pair.evidence for pair in find_pairs(parse(text)).found]


CACHE = '%past = Parameter : f32[B,2,T,4] "a" %new = Parameter : f32[B,2,S,4] "b" '
RECURRENT = TEXTS["recurrent"]

PAIRS: dict[str, tuple[Any, ...]] = {  # text, what is found, what shows it
    "appended": (
        CACHE + '%all = Concat(%past, %new) {axis: -2} Result(%all) names "y"', {"a": ("y", 2, "strong")},
        ["Concat along axis 2"]),
    "a sliding window": (TEXTS["a sliding window"], {"a": ("y", None, "strong")}, ["Concat along axis 2, Slice"]),
    "states of an lstm port by port": (
        TEXTS["states of an lstm port by port"],
        {"c": ("out1", None, "strong"), "h": ("out2", None, "strong")}, ["the last state of LSTMSequence"]),
    "through a reordering of beams and a convert": (
        CACHE + TEXTS["through a reordering of beams and a convert"], {"a": ("y", 2, "strong")}),
    "movements that cancel": (CACHE + TEXTS["movements that cancel"], {"a": ("y", 2, "strong")}),
    "a transpose that nothing undoes": (TEXTS["a transpose that nothing undoes"], {}),
    "stacked caches": (TEXTS["stacked caches"], {"past": ("present", 3, "strong")}),
    "the axis that grows beside sizes of one": (
        TEXTS["the axis that grows beside sizes of one"], {"a": ("y", 2, "strong")}),
    "both branches of an if": (TEXTS["both branches of an if"], {"past": ("y", 1, "strong")}),
    "the state of a loop": (TEXTS["the state of a loop"], {"h": ("y", None, "strong")}),
    "the only output of its type that depends on it": (
        RECURRENT + '%z = ReduceSum(%y, [1]) Result(%z) names "z"', {"h": ("n", None, "weak")}),
    "an output that does not depend on it": (
        RECURRENT + '%z = Slice(%p, [0], [2], [1], [1]) Result(%z) names "z"', {"h": ("n", None, "weak")}),
    "names decide between two": (
        TEXTS["names decide between two"], {"h0": ("hn", None, "weak"), "c0": ("cn", None, "weak")}),
    "the only output of a model is no state": (RECURRENT, {}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_found(name: str) -> None:
    text, expected, *shown = PAIRS[name]
    assert found(text) == expected
    for each in shown:
        assert evidence(text)[:1] == each


class TestStrongEvidence:
    @pytest.mark.parametrize(
        "update",
        ["ScatterUpdate(%h, [0], %x, 0)", "ScatterElementsUpdate(%h, %at, %x, 0)", "Select(%is, %x, %h)"],
    )
    def test_updated(self, update: str) -> None:
        text = f"""
            %h = Parameter : f32[1,4] "h" %x = Parameter : f32[1,4] "x" %at = Parameter : i64[1,4] "at"
            %is = Parameter : boolean[1,4] "is"
            %y = {update}
            %z = Exp(%x)
            Result(%z) names "z" Result(%y) names "y"
        """
        if update.startswith("Select"):  # both inputs are selected from
            raised(UsageError, found, text, match="h and x with y")
            assert found(text, {"x": ""}) == {"h": ("y", None, "strong")}
        else:
            assert found(text) == {"h": ("y", None, "strong")}

    @pytest.mark.parametrize("batch", ["B", "1"])
    @pytest.mark.parametrize("layers", [2, 1])
    @pytest.mark.parametrize("width", [4, 1])
    @pytest.mark.parametrize("form", ["Unsqueeze", "Reshape"])
    def test_states_of_layers_in_one_tensor(self, batch: str, layers: int, width: int, form: str) -> None:
        """A size of 1 does not match another size."""
        attributes = "{{special_zero: false}}"
        text = "Unsqueeze({}, [0])" if form == "Unsqueeze" else f"Reshape({{}}, [1, -1, {width}]) {attributes}"
        made = text.format
        cells = [
            f"""%h{k} = Gather(%state, {k}, 0)
                %s{k} = {made(f"%h{k}")}
                %g{k} = Squeeze(%s{k}, [0])
                %c{k} = GRUCell(%x, %g{k}, %w, %r, %b) {{hidden_size: {width}}}
                %n{k} = {made(f"%c{k}")}"""
            for k in range(layers)
        ]
        next_ = f"Concat({', '.join(f'%n{k}' for k in range(layers))}) {{axis: 0}}" if layers > 1 else "Identity(%n0)"
        text = f"""
            %x = Parameter : f32[{batch},3] "x" %state = Parameter : f32[{layers},{batch},{width}] "a"
            %w = Constant seed(w) : f32[{3 * width},3] %r = Constant seed(r) : f32[{3 * width},{width}]
            %b = Constant seed(b) : f32[{3 * width}]
            {" ".join(cells)}
            %next = {next_}
            %y = Exp(%c0)
            Result(%y) names "y" Result(%next) names "b"
        """
        assert found(text) == {"a": ("b", None, "strong")}


class TestBesideStrongPairs:
    """The input of a decoder became a state: its output has its type as well."""

    TEXT = """
        %x = Parameter : f32[1,1,4] "{x}" %mask = Parameter : f32[1,P] "mask"
        %past = Parameter : f32[1,T,4] "past"
        %present = Concat(%past, %x) {{axis: 1}} %turned = Transpose(%present, [0, 2, 1])
        %scores = MatMul(%x, %turned) %y = MatMul(%scores, %present) %pooled = ReduceMean(%y, [1])
        Result(%y) names "{y}" Result(%pooled) names "pooled" Result(%present) names "present"
    """

    def test_the_input_of_a_decoder_is_no_state(self) -> None:
        assert list(found(self.TEXT.format(x="inputs_embeds", y="last_hidden_state"))) == ["past"]

    def test_names_make_it_one(self) -> None:
        pairs = found(self.TEXT.format(x="context", y="context_out"))
        assert pairs == {"past": ("present", 1, "strong"), "context": ("context_out", None, "weak")}


class TestAppendedToAnInput:
    TEXT = """
        %x = Parameter : f32[B,N,3] "x" %h = Parameter : f32[B,T,3] "{h}"
        %hn = Concat({parts}) {{axis: 1}} %y = ReduceMean(%hn, [1])
        Result(%y) names "y" Result(%hn) names "hn"
    """

    @pytest.mark.parametrize("parts", ["%h, %x", "%x, %h"])
    def test_names_say_which_part_is_the_state(self, parts: str) -> None:
        """The first part was the state, under any name."""
        assert found(self.TEXT.format(h="h", parts=parts)) == {"h": ("hn", 1, "strong")}

    def test_without_names_it_is_the_first_part(self) -> None:
        assert found(self.TEXT.format(h="a", parts="%h, %x")) == {"a": ("hn", 1, "strong")}

    def test_names_that_fit_both_are_ambiguous(self) -> None:
        text = self.TEXT.format(h="h", parts="%x, %h").replace('%x = Parameter : f32[B,N,3] "x"',
                                                               '%x = Parameter : f32[B,N,3] "h_in"')
        raised(UsageError, found, text.replace('"hn"', '"h_out"'), match="h_in and h with h_out")


    def test_the_past_is_what_something_is_appended_to(self) -> None:
        text = self.TEXT.format(h="past_k", parts="%h, %x").replace('%x = Parameter : f32[B,N,3] "x"',
                                                                    '%x = Parameter : f32[B,N,3] "k"')
        assert found(text.replace('"hn"', '"new_k"')) == {"past_k": ("new_k", 1, "strong")}


class TestOneBranch:
    """Decoders with and without caches in one model: the branch without makes a new cache."""

    TEXT = """
        %x = Parameter : f32[B,S] "x" %past = Parameter : f32[B,T] "{past}"
        %c = Parameter : boolean[] "use_cache"
        %all = If(%c, %past, %x) {{
            input_map: [Branched(%p, _), Branched(%n, %m)], output_map: [Selected({then}, @new)]
        }}
          then_body {{
            %p = Parameter %n = Parameter
            %joined = Concat(%p, %n) {{axis: 1}} %same = Identity(%p)
            Result({then})
          }}
          else_body {{
            %m = Parameter
            %new = Abs(%m)
            Result(%new)
          }}
        %y = ReduceSum(%all, [1])
        Result(%y) names "y" Result(%all) names "{all}"
    """

    def text(self, past: str, then: str, all_: str) -> str:
        return self.TEXT.format(past=past, then=then, all=all_).replace("Selected(%", "Selected(@")

    @pytest.mark.parametrize("names", [("past_key_values.0.key", "present.0.key"), ("a", "b")])
    def test_appended_in_one(self, names: tuple[str, str]) -> None:
        text = self.text(names[0], "%joined", names[1])
        assert found(text) == {names[0]: (names[1], 1, "strong")}
        assert evidence(text) == ["Concat along axis 1, a branch of If"]

    def test_passed_through_in_one(self) -> None:
        """The keys of an encoder, which the first inference computes."""
        text = self.text("past_key_values.0.encoder.key", "%same", "present.0.encoder.key")
        assert found(text) == {"past_key_values.0.encoder.key": ("present.0.encoder.key", 1, "strong")}

    def test_passed_through_without_names(self) -> None:
        assert found(self.text("a", "%same", "b")) == {}


class TestVariableIds:
    TEXT = """
        %x = Parameter : f32[1] "x" %a = Parameter : f32[1] "1" %b = Parameter : f32[1] "12"
        %c = Add(%a, %x) %d = Multiply(%b, %x) %y = Subtract(%a, %b)
        Result(%y) names "y" Result(%c) names "23" Result(%d) names "3"
    """

    def test_two_states_of_one_id_are_refused(self) -> None:
        """Both became one variable, and the inference failed."""
        graph = parse(self.TEXT)
        with pytest.raises(UnsupportedError, match="'1' -> '23' and '12' -> '3' are both named '123'") as raised:
            MakeStateful({"1": "23", "12": "3"}).run(graph)
        assert raised.value.code == "ML327" and len(graph.parameters) == 3 and not graph.has(ops.ReadValue)

    def test_the_id_of_a_variable_of_the_model_is_refused(self) -> None:
        graph = parse(self.TEXT)
        assert MakeStateful({"1": "23"}).run(graph)
        with pytest.raises(UnsupportedError, match="the variable of the model and '12' -> '3'"):
            MakeStateful({"12": "3"}, find=False).run(graph)


def test_a_large_static_size_costs_no_memory() -> None:
    """The movements of a cache were computed on an array of its declared sizes: gigabytes for some hundred bytes."""
    graph = parse("""
        %q = Parameter : f32[B,2,L,400000000] "q" %k = Parameter : f32[B,2,L,400000000] "k"
        %past = Parameter : f32[B,2,T,400000000] "past"
        %present = Concat(%past, %k) {axis: 2} %turned = Transpose(%present, [0, 1, 3, 2])
        %scores = MatMul(%q, %turned) %weights = Softmax(%scores) {axis: -1} %y = MatMul(%weights, %present)
        Result(%y) names "y" Result(%present) names "present"
    """)
    assert MakeStateful(find=True).run(graph)
    tracemalloc.start()
    try:
        FuseStatefulAttention().run(graph)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


class TestNoPair:
    def test_a_pass_through(self) -> None:
        text = '%h = Parameter : f32[2] "h" %x = Parameter : f32[3] "x" Result(%h) names "y" Result(%x) names "z"'
        assert found(text) == {} and found(text, {"h": "y"}) == {"h": ("y", None, "given")}

    def test_another_type(self) -> None:
        text = """
            %h = Parameter : f32[B,T] "h" %x = Parameter : f32[B,1] "x"
            %a = Concat(%h, %x) {axis: 1} %y = Convert(%a) {destination_type: f16}
            Result(%y) names "y"
        """
        assert found(text) == {}
        with pytest.raises(UnsupportedError, match=r"'y'.* cannot be the next value of the input 'h'") as raised:
            found(text, {"h": "y"})
        assert (raised.value.code, raised.value.why) == ("ML327", "the element types f32 and f16 differ")


class TestGiven:
    TEXT = CACHE + '%all = Concat(%past, %new) {axis: 2} %m = Concat(%all, %new) {axis: 3} Result(%all) Result(%m)'
    TEXT = TEXT.replace("Result(%all)", 'Result(%all) names "y"').replace("Result(%m)", 'Result(%m) names "m"')

    @pytest.mark.parametrize(("given", "message"), [
        ({"q": "y"}, "no input 'q'"),
        ({"a": "q"}, "no output 'q'"),
        ({"a": "y", "b": "y"}, "'y' cannot be the next value of 'b'"),
        ([("a", "y"), ("a", "y")], "'a' is in two pairs"),
    ])
    def test_wrong_names(self, given: Any, message: str) -> None:
        text = self.TEXT.replace("%m = Concat(%all, %new) {axis: 3}", "%m = Exp(%all)")
        assert raised(UsageError, found, text, given, match=message).code == "ML202"

    @pytest.mark.parametrize(("sizes", "made", "why"), [
        ("2,4", "%w = Constant seed(w) : f32[4,5] %y = MatMul(%h, %w)",
         "dimension 1 is 4 before and 5 after, and nothing is appended along it"),
        ("N,M", "%y = Pad(%h, [1, 1], [0, 0], 0.0) {pad_mode: constant}",
         "more than one dimension changes: N becomes N+1 and M becomes M+1"),
    ])
    def test_sizes_that_change(self, sizes: str, made: str, why: str) -> None:
        with pytest.raises(UnsupportedError) as raised:
            found(f'%h = Parameter : f32[{sizes}] "h" {made} Result(%y) names "y"', {"h": "y"})
        assert raised.value.why == why

    def test_an_input_that_is_kept(self) -> None:
        text = CACHE + '%all = Concat(%past, %new) {axis: 2} Result(%all) names "y"'
        pairs = find_pairs(parse(text), {"a": ""})
        assert (pairs.found, pairs.kept) == ((), ("a",))


@pytest.mark.parametrize(("before", "after"), [
    ("past_key_values.0.key", "present.0.key"),
    ("past_key_values.0.decoder.key", "present.0.decoder.key"),
    ("past_key_values.3.value", "present_key_values.3.value"), ("past_0", "present_0"),
    ("past_key_0", "present_key_0"), ("past", "present"), ("cache_x", "cache_x_out"),
    ("cache_x", "new_cache_x"), ("h0", "hN"), ("h_0", "h_n"), ("state", "stateN"), ("in_x", "out_x"),
    ("x_in", "x_out"), ("l_key_cache_1_", "key_cache_1"),
])
def test_names_of_exporters(before: str, after: str) -> None:
    assert is_next(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [("past_0", "present_1"), ("key_0", "new_value_0"), ("input", "output"), ("x", "x"), ("input", "logits")],
)
def test_other_names(before: str, after: str) -> None:
    assert not is_next(before, after)


read_cases(globals())
