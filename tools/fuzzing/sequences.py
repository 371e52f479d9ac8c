"""Random programs on lists of tensors: built, read, changed, erased and mapped, in loops and branches two deep.

    python -m tools.fuzzing.sequences --count 1000 --seed 7

A program is a valid ONNX model by construction: places are taken modulo the length, lists that may be empty are read
behind a test of their length, and elements of one list are of one kind:

    scalar  []        uniform  [2,3]        tall  [?,3]        wide  [2,?]        ragged  [?,?]

Expected values come from ONNX Runtime, for several inputs in changing order on one compiled model.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

OPSET = 18
KINDS: dict[str, tuple[int | None, ...]] = {
    "scalar": (), "uniform": (2, 3), "tall": (None, 3), "wide": (2, None), "ragged": (None, None),
}  # fmt: skip
DEPTH = 2
"""How deep loops and branches are nested."""


@dataclass
class List:
    """A list by name: the kind of its elements, and how many there are at least."""

    name: str
    kind: str
    least: int


@dataclass
class Block:
    """The nodes of one graph, and what can be read there: what the graphs around it define as well."""

    depth: int
    nodes: list[Any] = field(default_factory=list)
    lists: list[List] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)
    items: list[tuple[str, str]] = field(default_factory=list)

    def inner(self) -> Block:
        return Block(self.depth + 1, [], [replace(each) for each in self.lists], list(self.numbers), list(self.items))


class Program:
    """One random model."""

    def __init__(self, seed: int, index: int) -> None:
        self.random = random.Random(f"{seed}/{index}")
        self.made = 0
        self.features: Counter[str] = Counter()

    def model(self) -> Any:
        """The ModelProto: inputs x f32[R,C] (at least 3 of each), w f32[5,4], n and k i64; several tensors as outputs.

        Of w all sizes are known, of x none.
        """
        from onnx import TensorProto, checker, helper

        top = Block(0)
        top.numbers += ["n", "k"]
        for _ in range(self.random.randint(1, 2)):
            self.new_list(top)
        for _ in range(self.random.randint(2, 6)):
            self.step(top)
        outputs: dict[str, tuple[int, int]] = {}
        for each in top.lists[-4:]:
            outputs |= self.shown(top, each)
        outputs |= {self.node(top, "Identity", [name]): (1, len(KINDS[kind])) for name, kind in top.items[-2:]}
        ports = [helper.make_tensor_value_info(name, dtype, [None] * rank) for name, (dtype, rank) in outputs.items()]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["R", "C"])
        numbers = [helper.make_tensor_value_info(name, TensorProto.INT64, []) for name in ("n", "k")]
        w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [5, 4])
        graph = helper.make_graph(top.nodes, "main", [x, w, *numbers], ports)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
        checker.check_model(model)
        return model

    def feeds(self) -> list[dict[str, Any]]:
        """Inputs in an order that makes lists longer, shorter and empty."""
        source = np.random.default_rng(self.random.getrandbits(32))
        sets = []
        for n in self.random.sample((3, 0, 2, 5, 1), 4):
            shape = source.integers(3, 7, 2)
            k = source.integers(0, 9)
            x, w = (source.standard_normal(each).astype(np.float32) for each in (shape, (5, 4)))
            sets.append({"x": x, "w": w, "n": np.int64(n), "k": np.int64(k)})
        return sets

    # -- names and nodes

    def name(self, stem: str) -> str:
        self.made += 1
        return f"{stem}{self.made}"

    def node(self, block: Block, op: str, inputs: list[str], stem: str = "v", **attributes: Any) -> str:
        from onnx import helper

        name = self.name(stem)
        block.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def constant(self, block: Block, value: Any, dtype: Any = np.int64) -> str:
        from onnx import numpy_helper

        return self.node(block, "Constant", [], "c", value=numpy_helper.from_array(np.array(value, dtype)))

    def number(self, block: Block) -> str:
        """A number not below 0."""
        if block.numbers and self.random.random() < 0.8:
            return self.random.choice(block.numbers[-4:])
        return self.constant(block, self.random.randint(0, 4))

    def modulo(self, block: Block, number: str, limit: str) -> str:
        return self.node(block, "Mod", [number, limit])

    def length(self, block: Block, each: List) -> str:
        return self.node(block, "SequenceLength", [each.name], "len")

    def one_more(self, block: Block, number: str) -> str:
        return self.node(block, "Add", [number, self.constant(block, 1)])

    # -- elements

    def item(self, block: Block, kind: str) -> str:
        """A tensor of a kind, of sizes that only the run tells where they may differ."""
        ready = [name for name, other in block.items if other == kind]
        if ready and self.random.random() < 0.4:
            return self.random.choice(ready)
        source = self.random.choice("xw")
        if kind == "scalar":
            base = self.node(block, "ReduceMax", [source], keepdims=0)
        else:
            ends = [
                self.constant(block, [size]) if size is not None else self.some_size(block, axis, source)
                for axis, size in enumerate(KINDS[kind])
            ]
            stop = self.node(block, "Concat", ends, axis=0)
            base = self.node(block, "Slice", [source, self.constant(block, [0, 0]), stop])
        shift = self.node(block, "Cast", [self.number(block)], to=1)
        made = self.node(block, "Add", [base, shift], "item")
        block.items.append((made, kind))
        return made

    def some_size(self, block: Block, axis: int, source: str) -> str:
        """A size [1] from 0 (seldom) or 1 to that of the source."""
        whole = self.node(block, "Gather", [self.node(block, "Shape", [source]), self.constant(block, axis)])
        size = self.modulo(block, self.number(block), whole)
        if self.random.random() < 0.9:
            size = self.one_more(block, size)
        return self.node(block, "Reshape", [size, self.constant(block, [1])])

    # -- lists

    def new_list(self, block: Block) -> List:
        choice = self.random.random()
        kind = self.random.choice(list(KINDS))
        if choice < 0.3:
            made = List(self.node(block, "SequenceEmpty", [], "empty", dtype=1), kind, 0)
        elif choice < 0.65:
            items = [self.item(block, kind) for _ in range(self.random.randint(1, 3))]
            made = List(self.node(block, "SequenceConstruct", items, "list"), kind, len(items))
        else:
            made = self.split(block)
        block.lists.append(made)
        self.features["list"] += 1
        return made

    def split(self, block: Block) -> List:
        """An input in pieces, of rows or of columns; a corner of it where the other size is to be fixed."""
        axis = self.random.randint(0, 1)
        fixed = self.random.random() < 0.6
        x = self.random.choice("xw")
        if fixed:
            bounds = [self.constant(block, each) for each in ([0], [(3, 2)[axis]], [1 - axis])]
            x = self.node(block, "Slice", [x, *bounds])
        way = self.random.choice(("rows", "chunks", "sizes"))
        self.features[f"split {way}"] += 1
        if way == "rows":
            if fixed and axis == 0:
                made = self.node(block, "SplitToSequence", [x], "parts", axis=axis, keepdims=1)
                return List(made, "tall", 3)
            made = self.node(block, "SplitToSequence", [x], "parts", axis=axis, keepdims=1)
            return List(made, "wide" if fixed else "ragged", 3)
        if way == "chunks":
            each = self.one_more(block, self.modulo(block, self.number(block), self.constant(block, 3)))
            if self.random.random() < 0.5:
                each = self.constant(block, self.random.randint(1, 3))
            made = self.node(block, "SplitToSequence", [x, each], "parts", axis=axis)
            return List(made, ("tall", "wide")[axis] if fixed else "ragged", 1)
        whole = self.node(block, "Gather", [self.node(block, "Shape", [x]), self.constant(block, [axis])])
        first = self.constant(block, [self.random.randint(0, 3)])
        sizes = self.node(block, "Concat", [first, self.node(block, "Sub", [whole, first])], axis=0)
        made = self.node(block, "SplitToSequence", [x, sizes], "parts", axis=-2 + axis)
        return List(made, ("tall", "wide")[axis] if fixed else "ragged", 2)

    def place(self, block: Block, each: List, last: int) -> str:
        """A place among the elements, or `last` behind them."""
        if self.random.random() < 0.4 and each.least + last > 0:
            return self.constant(block, self.random.randint(-each.least, each.least + last - 1))
        length = self.length(block, each)
        limit = self.one_more(block, length) if last else length
        place = self.modulo(block, self.number(block), limit)
        if self.random.random() < 0.3:
            place = self.node(block, "Sub", [place, length])
        return place

    def insert(self, block: Block, each: List) -> None:
        inputs = [each.name, self.item(block, each.kind)]
        if self.random.random() < 0.5:
            inputs.append(self.place(block, each, 1))
            self.features["insert"] += 1
        each.name = self.node(block, "SequenceInsert", inputs, "list")
        each.least += 1

    def erase(self, block: Block, each: List) -> None:
        if each.least < 1:
            self.if_some(block, each, self.erase)
            return
        inputs = [each.name]
        if self.random.random() < 0.7:
            inputs.append(self.place(block, each, 0))
        each.name = self.node(block, "SequenceErase", inputs, "list")
        each.least -= 1
        self.features["erase"] += 1

    def read(self, block: Block, each: List) -> None:
        if each.least < 1:
            self.insert(block, each)
        made = self.node(block, "SequenceAt", [each.name, self.place(block, each, 0)], "item")
        block.items.append((made, each.kind))
        self.features["at"] += 1

    def count(self, block: Block, each: List) -> None:
        block.numbers.append(self.length(block, each))

    def map(self, block: Block, each: List) -> None:
        """A function of every element, of the list twice or with a tensor beside it."""
        from onnx import helper

        inner = Block(block.depth + 1)
        names = [self.name("e") for _ in range(2)]
        way = self.random.choice(("alone", "twice", "tensor"))
        inputs = [each.name]
        if way == "alone":
            made = self.node(inner, "Neg", names[:1])
        elif way == "twice":
            inputs.append(each.name)
            made = self.node(inner, "Mul", names)
        else:
            inputs.append(self.node(block, "Cast", [self.number(block)], to=1))
            made = self.node(inner, "Sub", names)
        shapes: list[Any] = [KINDS[each.kind], () if way == "tensor" else KINDS[each.kind]]
        ports = [
            helper.make_tensor_value_info(n, 1, list(s)) for n, s in zip(names[: len(inputs)], shapes, strict=False)
        ]
        result = helper.make_tensor_value_info(made, 1, list(KINDS[each.kind]))
        body = helper.make_graph(inner.nodes, "map", ports, [result])
        each.name = self.node(block, "SequenceMap", inputs, "list", body=body)
        self.features["map"] += 1

    # -- control flow

    def if_some(self, block: Block, each: List, change: Callable[[Block, List], None]) -> None:
        """A change in a branch that is taken where the list has an element."""
        test = self.node(block, "Greater", [self.length(block, each), self.constant(block, 0)])
        least = each.least
        self.branch(block, test, each, [lambda b, e: change(b, holding(e, 1)), lambda b, e: None])
        each.least = max(least - 1, 0)

    def branch(self, block: Block, test: str, each: List, changes: list[Callable[[Block, List], None]]) -> None:
        from onnx import helper

        graphs, least = [], []
        for number, change in enumerate(changes):
            inner = block.inner()
            mine = List(each.name, each.kind, each.least)
            inner.lists.append(mine)
            change(inner, mine)
            if mine.name == each.name:
                mine.name = self.node(inner, "Identity", [mine.name], "list")
            info = helper.make_tensor_sequence_value_info(mine.name, 1, None)
            graphs.append(helper.make_graph(inner.nodes, f"branch{number}", [], [info]))
            least.append(mine.least)
        each.name = self.node(block, "If", [test], "list", then_branch=graphs[0], else_branch=graphs[1])
        each.least = min(least)
        self.features["if"] += 1

    def choose(self, block: Block, each: List) -> None:
        half = self.modulo(block, self.number(block), self.constant(block, 2))
        test = self.node(block, "Equal", [half, self.constant(block, 1)])

        def some(inner: Block, mine: List) -> None:
            for _ in range(self.random.randint(0, 2)):
                self.step(inner, mine)

        self.branch(block, test, each, [some, some])

    def loop(self, block: Block) -> None:
        """A loop whose states are one or two lists and a number, and which may leave before its last iteration."""
        from onnx import helper

        chosen = self.random.sample(block.lists, min(len(block.lists), self.random.randint(1, 2)))
        inner = block.inner()
        i, go = self.name("i"), self.name("go")
        inner.numbers.append(i)
        states = [List(self.name("list"), each.kind, self.random.choice((0, each.least))) for each in chosen]
        kept = {each.name for each in chosen}
        inner.lists = [each for each in inner.lists if each.name not in kept or self.random.random() < 0.3]
        inner.lists += states
        assumed = [each.least for each in states]
        ports = [
            helper.make_tensor_value_info(i, 7, []), helper.make_tensor_value_info(go, 9, []),
            *(helper.make_tensor_sequence_value_info(each.name, 1, None) for each in states),
        ]  # fmt: skip
        starts = [each.name for each in states]
        for _ in range(self.random.randint(1, 3)):
            self.step(inner, self.random.choice(states))
        for each, least, start in zip(states, assumed, starts, strict=True):
            while each.least < least:
                self.insert(inner, each)
            if each.name == start:
                self.insert(inner, each)
        on = self.node(inner, "Identity", [go])
        if self.random.random() < 0.3:
            limit = self.modulo(inner, self.number(inner), self.constant(inner, 4))
            on = self.node(inner, "Less", [i, limit])
        shown = self.item(inner, self.random.choice(("uniform", "scalar")))
        shown = self.node(inner, "Identity", [shown])
        results = [
            helper.make_tensor_value_info(on, 9, []),
            *(helper.make_tensor_sequence_value_info(each.name, 1, None) for each in states),
            helper.make_tensor_value_info(shown, 1, None),
        ]  # fmt: skip
        body = helper.make_graph(inner.nodes, "body", ports, results)
        trips = self.modulo(block, self.number(block), self.constant(block, 5))
        outputs = [self.name("list") for _ in chosen]
        block.nodes.append(
            helper.make_node("Loop", [trips, "", *(e.name for e in chosen)], [*outputs, self.name("scan")], body=body)
        )
        for each, name, least in zip(chosen, outputs, assumed, strict=True):
            each.name, each.least = name, least
        self.features[f"loop at depth {block.depth}"] += 1

    def step(self, block: Block, each: List | None = None) -> None:
        """One random thing, to a given list or to any."""
        each = each or self.random.choice(block.lists)
        if block.depth < DEPTH and self.random.random() < 0.35:
            if self.random.random() < 0.4:
                self.choose(block, each)
            else:
                self.loop(block)
            return
        ways: list[Any] = [self.insert] * 4 + [self.read] * 3 + [self.erase] * 2 + [self.count, self.map]
        self.random.choice(ways)(block, each)

    def shown(self, block: Block, each: List) -> dict[str, tuple[int, int]]:
        """Tensors that tell what is in a list, with their element types and ranks."""
        rank = len(KINDS[each.kind])
        outputs = {self.length(block, each): (7, 0)}
        if each.least < 1:
            self.insert(block, each)
        outputs[self.node(block, "SequenceAt", [each.name, self.place(block, each, 0)])] = (1, rank)
        if each.kind == "ragged":
            return outputs
        new = int(each.kind == "scalar" or (each.kind == "uniform" and self.random.random() < 0.5))
        axis = {"scalar": 0, "uniform": self.random.randint(-2 - new, 1 + new), "tall": 0, "wide": -1}[each.kind]
        outputs[self.node(block, "ConcatFromSequence", [each.name], axis=axis, new_axis=new)] = (1, rank + new)
        return outputs


def holding(each: List, least: int) -> List:
    """The list where it is known to hold so many elements."""
    each.least = max(each.least, least)
    return each


def sample(task: tuple[int, int]) -> Any:
    """The program of (seed, index) with what ONNX Runtime computes; or the reason to skip it."""
    from mo_loop.verify.oracle import OnnxRuntime
    from tools.fuzzing.check import Sample

    program = Program(*task)
    model = program.model().SerializeToString()
    feeds = program.feeds()
    try:
        session = OnnxRuntime(model)
    except Exception as error:
        return f"session: {str(error)[:300]}"
    kept, expected = [], []
    for each in feeds:
        try:
            expected.append(session.run(each))
            kept.append(each)
        except Exception as error:
            said = str(error)
    if not kept:
        return f"run: {said[:300]}"
    order = (*range(len(kept)), *reversed(range(len(kept))))
    return Sample(f"{task[0]}/{task[1]}", model, kept, expected, order, dict(program.features), len(feeds) - len(kept))


def main(arguments: list[str] | None = None) -> int:
    """Run programs; 0 if all that ONNX Runtime can run are right."""
    from mo_loop.verify.workers import Pool
    from tools.fuzzing.check import PASSED, settle

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--save", metavar="FOLDER", help="write the models that are not right into a folder")
    options = parser.parse_args(arguments)
    tasks = [(options.seed, index) for index in range(options.first, options.first + options.count)]
    samples, skipped, dropped = [], Counter(), 0
    with Pool("tools.fuzzing.sequences:sample", jobs=options.jobs, limit=60) as pool:
        for outcome in pool.map(tasks):
            if not outcome.ok or isinstance(outcome.value, str):
                skipped[str(outcome.value if outcome.ok else outcome.message)[:200]] += 1
                continue
            samples.append(outcome.value)
            dropped += outcome.value.dropped_sets
    results: Counter[str] = Counter()
    features: Counter[str] = Counter()
    with Pool("tools.fuzzing.check:judge", jobs=options.jobs, limit=120) as pool:
        for outcome in pool.map(("mo_loop", each) for each in samples):
            each = outcome.task[1]
            verdict = settle(outcome, pool.call)
            results[verdict.result] += 1
            features.update(each.features)
            if verdict.result != PASSED:
                print(f"{each.name}: {verdict.result} {verdict.code} {verdict.message[:300]}")
                if options.save:
                    path = Path(options.save, each.name.replace("/", "_") + ".onnx")
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(each.model)
    for reason, count in skipped.most_common(10):
        print(f"skipped {count}: {reason}")
    print(f"{dict(results)}, {sum(skipped.values())} skipped, {dropped} sets dropped")
    print(dict(features))
    return int(any(key != PASSED for key in results))


if __name__ == "__main__":
    sys.exit(main())
