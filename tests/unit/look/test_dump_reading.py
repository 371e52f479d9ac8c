"""The files of a dump describe the graph at each step: the changes of a pass are applied to the files before."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import networkx as nx
import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.errors import FileError
from mo_loop.look.dump import Dumper, read_dump
from mo_loop.look.page import delta
from mo_loop.look.page import page as page_of
from mo_loop.look.records.node_link import node_link
from mo_loop.look.records.opening import opened
from mo_loop.text import parse, to_text
from tests import MODELS
from tests.harness import folded, parsed, raised
from tests.pages import after, document
from tests.unit.look.test_dump import TEXT

SOME = (
    "pytorch/for_break", "pytorch/loop_if_loop", "pytorch/beam_search", "pytorch/scan_dynamo",
    "pytorch_sequences/list_append_if",
)

LOOP = """main (float[3] x, int64 n) => (float[3] y) {
  [loop] y = Loop (n, "", x) <body = step (int64 i, bool c, float[3] s) => (bool d, float[3] t) {
    d = Identity (c) k = Constant <value_float = 2.0> () [double] t = Mul (s, k)
  }>
}"""


def dumped(model: Any, folder: Path, **options: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        convert_model(model, **folded(), observers=[Dumper(folder, ["json", "text"], **options)])
    return folder


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]*.json"))


def stripped(data: Any) -> Any:
    """Without the facts that are only in the last file."""
    if isinstance(data, dict):
        return {key: stripped(value) for key, value in data.items() if key not in ("layer", "offset")}
    return [stripped(each) for each in data] if isinstance(data, list) else data


@pytest.mark.parametrize("name", SOME)
def test_each_step_is_the_graph_at_that_step(name: str, tmp_path: Path) -> None:
    """Compared with a dump of whole graphs of the same conversion; the last state is the graph as written."""
    model = MODELS / f"{name}.onnx"
    dump = read_dump(dumped(model, tmp_path / "a"))
    whole = read_dump(dumped(model, tmp_path / "b", whole=True))
    assert [step.file.name for step in dump.steps[:-1]] == [step.file.name for step in whole.steps]
    assert len(dump.steps) > 3 and dump.steps[-1].name == "written"
    for place, step in enumerate(whole.steps):
        assert dump.graph(place) == json.loads(step.file.read_bytes()) and dump.state(place) == whole.state(place)
    assert dump.graph(-2) == stripped(json.loads(dump.steps[-1].file.read_bytes()))
    assert not any(delta(dump.state(-2), dump.state(-1)).values())


@pytest.mark.parametrize("name", SOME[:2])
def test_networkx_reads_every_file(name: str, tmp_path: Path) -> None:
    for file in files(dumped(MODELS / f"{name}.onnx", tmp_path)):
        data = json.loads(file.read_bytes())
        graph = nx.node_link_graph(data, edges="edges")
        assert len(graph) == len(data["nodes"]) and graph.number_of_edges() == len(data["edges"])
        if data["graph"].get("delta"):
            assert set(nx.get_node_attributes(graph, "status").values()) <= {"added", "changed", "context"}


@pytest.mark.keeps_loops
def test_ids_and_labels_are_those_of_the_whole_run(tmp_path: Path) -> None:
    folder = dumped(parsed(LOOP), tmp_path)
    first, *others = [json.loads(file.read_bytes()) for file in files(folder)]
    loop = next(node["id"] for node in first["nodes"] if node["op"] == "Loop")
    found = [node for data in others for node in data["nodes"] if node["id"] == loop]
    assert len(found) > 2 and {node["name"] for node in found} == {"y"}
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.txt"))]
    defined = [set(re.findall(r"%([\w.]+) = Loop", text)) for text in texts]
    assert {"y"} == set.union(*defined) and parse(texts[0]) and parse(texts[-1])


@pytest.mark.keeps_loops
def test_the_text_of_what_changed(tmp_path: Path) -> None:
    folder = dumped(parsed(LOOP), tmp_path)
    (text,) = [file.read_text("utf-8") for file in folder.glob("*_GuardTripCounts.txt")]
    assert re.match(r"# what GuardTripCounts changed: 2 nodes added, 0 removed, 1 changed\n# before: \d+_\w+\n", text)
    assert re.search(r"^\+ %(\d+) = Maximum\(%n, 0\) : i64\[\]$", text, re.MULTILINE)
    assert re.search(r"^~ %y = Loop\(%\d+, ", text, re.MULTILINE)
    assert re.search(r"^  was %y = Loop\(%n, ", text, re.MULTILINE)


def test_a_body_in_the_text(tmp_path: Path) -> None:
    folder = dumped(parsed(LOOP), tmp_path)
    texts = "".join(file.read_text("utf-8") for file in sorted(folder.glob("[0-9]*.txt"))[1:])
    assert re.search(r'^body "step" of Loop "y" \(\d+/body\)$', texts, re.MULTILINE)


def test_layers_and_offsets(tmp_path: Path) -> None:
    """The last file has the id of each layer, and after save_model the place of each constant in the .bin."""
    dumper = Dumper(tmp_path / "steps", ["json"], saved=True)
    model = convert_model(parsed("main (float[3] x) => (float[3] y) <float[3] w = {1,2,3}> { y = Mul (x, w) }"),
                          observers=[dumper])
    save_model(model, tmp_path / "m.xml", observers=[dumper])
    data = json.loads(files(tmp_path / "steps")[-1].read_bytes())
    layers = {node["op"]: node["layer"] for node in data["nodes"]}
    xml = (tmp_path / "m.xml").read_text("utf-8")
    for op, layer in layers.items():
        kind = {"Constant": "Const"}.get(op, op)
        assert re.search(f'<layer id="{layer}" name="[^"]*" type="{kind}"', xml), op
    (constant,) = [node for node in data["nodes"] if node["op"] == "Constant"]
    assert constant["offset"] == 0 and constant["bytes"] == 12


def test_the_page_has_the_ids_of_the_file_for_port_maps(tmp_path: Path) -> None:
    """`internal_layer_id` of the .xml."""
    dumper = Dumper(tmp_path / "steps", ["json"], saved=True)
    model = convert_model(parsed(LOOP), **folded(), observers=[dumper])
    save_model(model, tmp_path / "m.xml", observers=[dumper])
    data = document((tmp_path / "steps" / "index.html").read_text("utf-8"))
    (loop,) = [node for node in after(data)[0].values() if node["op"] == "Loop"]
    ports = [*loop["port_map"]["inputs"], *loop["port_map"]["outputs"]]
    layers = data["written"]["layers"]
    found = {layers[str(entry["parameter" if "parameter" in entry else "result"])] for entry in ports}
    written = re.findall(r'internal_layer_id="(\d+)"', (tmp_path / "m.xml").read_text("utf-8"))
    assert found and found <= set(map(int, written))


class TestAfter:
    def test_whole_graphs_beside_what_changed(self, tmp_path: Path) -> None:
        names = ("GuardTripCounts", "PortRenumbering")
        dump = read_dump(dumped(parsed(LOOP), tmp_path, after=names))
        for name in names:
            (file,) = tmp_path.glob(f"*_{name}.full.json")
            places = [place for place, step in enumerate(dump.steps) if step.place <= int(file.name[:3])]
            assert json.loads(file.read_bytes()) == dump.graph(places[-1])
            assert parse(file.with_suffix(".txt").read_text("utf-8"))

    def test_the_chain_does_not_need_them(self, tmp_path: Path) -> None:
        dumped(parsed(LOOP), tmp_path, after=["GuardTripCounts"])
        for file in tmp_path.glob("*.full.json"):
            file.unlink()
        dump = read_dump(tmp_path)
        assert dump.graph(-2) == stripped(json.loads(dump.steps[-1].file.read_bytes()))


class TestDamage:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        dump = read_dump(dumped(parsed(LOOP), tmp_path))
        dump.steps[1].file.unlink()
        caught = raised(FileError, dump.graph, 2, match="cannot be read")
        assert dump.steps[2].file.name in caught.why and "files before it" in caught.hint
        assert dump.graph(-1)  # a whole graph needs no other file

    @pytest.mark.parametrize("content", ["", "[]", "{}", '{"graph": {"delta": true}}', '{"graph": {}}', "\xff"])
    def test_other_content(self, content: str, tmp_path: Path) -> None:
        dump = read_dump(dumped(parsed(LOOP), tmp_path))
        dump.steps[1].file.write_text(content, "latin-1")
        raised(FileError, dump.graph, 1)

    def test_a_file_that_is_before_itself(self, tmp_path: Path) -> None:
        dump = read_dump(dumped(parsed(LOOP), tmp_path))
        file = dump.steps[1].file
        data = json.loads(file.read_bytes())
        data["graph"]["previous"] = file.stem
        file.write_text(json.dumps(data))
        raised(FileError, dump.graph, 1, match="not a graph of --dump")

    def test_a_previous_file_elsewhere(self, tmp_path: Path) -> None:
        """Only the folder of the file is read."""
        dump = read_dump(dumped(parsed(LOOP), tmp_path / "steps"))
        file = dump.steps[1].file
        data = json.loads(file.read_bytes())
        (tmp_path / "victim.json").write_text(dump.steps[0].file.read_text())
        data["graph"]["previous"] = "../victim"
        file.write_text(json.dumps(data))
        raised(FileError, dump.graph, 1, match=r"victim\.json cannot be read")

    def test_an_empty_folder(self, tmp_path: Path) -> None:
        raised(FileError, read_dump, tmp_path, match=r"no \.json file of a dump")


def test_the_text_of_a_whole_graph_is_its_json() -> None:
    """Also the second time, when unchanged nodes are taken from the first; with additions, bodies, odd names."""
    from mo_loop.look.records.node_link import spelled
    from mo_loop.look.records.node_records import Describer, GraphState, Record

    graph = parse(TEXT)
    graph.parameters[1].name = 'a "b" \ud800 \\ \u2028 \x00'
    describer = Describer()

    def whole(state: GraphState, more: dict[int, Record]) -> str:
        return spelled(node_link(state, more)) + "\n"

    def plain(state: GraphState) -> str:
        return json.dumps(node_link(state), separators=(",", ":")) + "\n"

    assert whole(describer.state(graph), {}) == plain(describer.state(graph))
    graph.parameters[0].name = "other"
    state = describer.state(graph)
    loop = next(number for number, record in state.nodes.items() if record["op"] == "Loop")
    inner = next(number for number, record in state.nodes.items() if record["op"] == "Unsqueeze")
    found = json.loads(whole(state, {loop: {"layer": 5}, inner: {"layer": 6, "offset": 64}}))
    assert stripped(found) == json.loads(plain(state))
    (node,) = [node for node in found["nodes"] if node["id"] == loop]
    (below,) = [each for each in node["bodies"][0]["nodes"] if each["id"] == inner]
    assert (node["layer"], below["layer"], below["offset"]) == (5, 6, 64)


@pytest.mark.parametrize("name", SOME)
def test_the_text_of_a_whole_graph_can_be_parsed(name: str, tmp_path: Path) -> None:
    """It is the text of the graph, but for the labels."""
    folder = dumped(MODELS / f"{name}.onnx", tmp_path)
    whole = parse(sorted(folder.glob("*_written.txt"))[0].read_text("utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph = convert_model(MODELS / f"{name}.onnx", **folded()).graph
    assert to_text(whole, canonical=True) == to_text(graph, canonical=True)


def test_the_picture_of_a_node_that_read_a_dropped_output() -> None:
    from mo_loop.look.dump.delta_text import delta_dot
    from mo_loop.look.records.node_records import Describer

    graph = parse("""
    %x = Parameter : f32[2,N]
    %a, %b = Split(%x, 0) {num_splits: 2} : f32[1,N], f32[1,N] %r = ReLU(%b)
    Result(%a)""")
    describer = Describer()
    before = describer.state(graph)
    (split,) = [node for node in graph if len(node.outputs) == 2]
    graph.sweep()
    graph.drop_outputs(split, [0])
    now = describer.state(graph)
    picture = delta_dot(before, now, delta(before, now), shapes=True, types=True)
    assert f"n{describer.id(split)} -> n" in picture and "dashed" in picture


class TestSize:
    def test_page_and_json_of_a_large_model(self, tmp_path: Path) -> None:
        """At most three times the JSON of the graph as written, without the program of the page."""
        model = blocks(300)
        folder = dumped(model, tmp_path)
        final = sorted(folder.glob("*_written.json"))[0]
        assert len(read_dump(folder).state(-1).nodes) > 1000
        page = (folder / "index.html").read_text("utf-8")
        empty = page_of({"title": ""})
        size = sum(file.stat().st_size for file in files(folder)) + len(page.encode()) - len(empty.encode())
        assert len(files(folder)) > 4 and size < 3 * final.stat().st_size


def blocks(count: int) -> onnx.ModelProto:
    """Blocks of a product, a sum, GELU spelled out, a reshape of computed shape, and a small loop at the end."""
    statements = []
    last = "x"
    for number in range(count):
        names = {key: f"{key}{number}" for key in ("m", "a", "d", "e", "p", "h", "g", "s", "r")}
        statements.append("""
            {m} = MatMul ({last}, w) {a} = Add ({m}, b) {d} = Div ({a}, root) {e} = Erf ({d}) {p} = Add ({e}, one)
            {h} = Mul ({a}, {p}) {g} = Mul ({h}, half) {s} = Shape ({g}) {r} = Reshape ({g}, {s})""".format(
            last=last, **names))
        last = names["r"]
    made: onnx.ModelProto = parsed(
        "main (float[N,4] x, int64 n) => (float[N,4] y) <float[4,4] w = {" + ",".join(["0.5"] * 16) + "}, "
        "float[4] b = {1,2,3,4}, float root = {1.4142135}, float one = {1}, float half = {0.5}> {"
        + "".join(statements) + f""" y = Loop (n, "", {last}) <body = step (int64 i, bool c, float[N,4] s) =>
        (bool d, float[N,4] t) {{ d = Identity (c) t = Tanh (s) }}> }}"""
    )
    return made


@pytest.mark.parametrize("name", ["step.json", "step.txt", "model.onnx"])
def test_a_device_in_place_of_a_file_is_refused(name: str, tmp_path: Path) -> None:
    """It has no end: reading it would take all memory."""
    (tmp_path / name).symlink_to("/dev/zero")
    assert raised(FileError, opened, tmp_path / name, match="is a device, not a model").code == "ML211"
