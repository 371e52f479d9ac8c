"""Attributes: every class reads what it writes."""

import itertools
from typing import Any, Literal, get_args, get_origin

import pytest

from mo_loop.graph.types import ElementType, boolean, f32, i64
from mo_loop.ir.reader.layer_records import parse_shape
from mo_loop.ir.reader.layer_types import attributes_of, classes, parsed
from mo_loop.ir.xml import spelled
from mo_loop.ops.base import Op
from mo_loop.ops.recurrent import Assign

VALUES: dict[Any, list[Any]] = {
    int: [0, -7, 1 << 40],
    float: [0.0, 1e-5, 1.5, -3.4028234663852886e38, 0.1, 2147483647.0, 1 / 3, float("inf"), float("-inf"), 1e300],
    bool: [True, False], str: ["numpy", "a->b,c"], ElementType: [f32, i64, boolean], tuple: [(), (1, 2)],
}


def values(kind: Any) -> list[Any]:
    """A few values of an attribute's kind."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if get_origin(kind) is tuple:
        items = values(get_args(kind)[0])
        return [(), (items[0],), tuple(items)] if items[0] != "numpy" else [("tanh",), ("sigmoid", "tanh")]
    return VALUES[kind]


COMPLETE = sorted(set(classes().values()) - {Assign}, key=lambda cls: cls.__name__)
"""The file has the type of a variable at its ReadValue; the reader completes an Assign from it (test_variables.py)."""


@pytest.mark.parametrize("cls", COMPLETE, ids=lambda cls: cls.__name__)
def test_what_a_class_writes_it_reads(cls: type[Op]) -> None:
    columns = [values(cls._kinds[key]) for key in cls.attributes]
    longest = max(map(len, columns), default=1)
    for row in itertools.islice(zip(*map(itertools.cycle, columns), strict=False), longest) if columns else [()]:
        given = dict(zip(cls.attributes, row, strict=True))
        node: Op = object.__new__(cls)
        node.__dict__.update(given)
        texts = {key: spelled(value) for key, value in node.xml_attributes().items() if value is not None}
        # The XML library undoes the escapes.
        texts = {key: text.replace("&gt;", ">") for key, text in texts.items()}
        assert attributes_of(cls, texts) == given


def test_no_two_classes_share_a_type_and_version() -> None:
    found = classes()
    assert len(set(found.values())) == len(found) > 130
    assert found["Convert", "opset1"].__name__ == "Convert"


@pytest.mark.parametrize(("text", "kind", "value"), [
    ("1", bool, True), ("False", bool, False), ("NUMPY", Literal["numpy", "none"], "numpy"),
    ("", tuple[int, ...], ()),
    ("1, 2", tuple[int, ...], (1, 2)), ("1e-05", float, 1e-05), ("-1", int, -1), ("inf", float, float("inf")),
])
def test_spellings_of_other_converters(text: str, kind: Any, value: Any) -> None:
    assert parsed(text, kind) == value


@pytest.mark.parametrize(
    ("text", "kind"),
    [("yes", bool), ("", int), ("1.5", int), ("x", float), ("f31", ElementType), ("max", Literal["numpy", "none"]),
     ("1,,2", tuple[int, ...]), ("1", Any)],
)
def test_values_of_the_wrong_kind(text: str, kind: Any) -> None:
    with pytest.raises(ValueError):
        parsed(text, kind)


@pytest.mark.parametrize("text", ["2,x", "-2", "5..1", "1...2", ",", "2,,3", "1.5"])
def test_invalid_shapes(text: str) -> None:
    with pytest.raises(ValueError):
        parse_shape(text)


def test_shapes() -> None:
    assert parse_shape("") == () and parse_shape("...") is None and parse_shape("1, 2") == (1, 2)
    assert [(d.lo, d.hi) for d in parse_shape("?,-1,..3,2..,1..4") or ()] == [  # type: ignore[union-attr]  # all unknown
        (0, None), (0, None), (0, 3), (2, None), (1, 4),
    ]
    assert repr(parse_shape("?,3,?", "n")) == "(n0, 3, n2)"
