"""tools/same_ir.py finds what differs between the IR of two checkouts."""

import json

import pytest

from tools.same_ir import Difference, Expected, difference_of, main, report

PACKAGE = """
def convert_model(path, plugins, **options):
    if path == REFUSED:
        raise ValueError("no such operator")
    return path

def save_model(model, target, compress_to_fp16):
    target.write_text("<net>\\n<data " + model + "/>\\n</net>")
    target.with_suffix(".bin").write_bytes(BYTES + b"h" * compress_to_fp16)
"""


@pytest.fixture
def run(tmp_path, capsys):
    """The exit code and the output of a comparison of two packages that write the given bytes."""

    def run(sides, *arguments):
        names = []
        for name, (content, refused) in zip(("base", "other"), sides, strict=True):
            (tmp_path / name / "mo_loop").mkdir(parents=True)
            text = f"BYTES, REFUSED = {content!r}, {refused!r}\n{PACKAGE}"
            (tmp_path / name / "mo_loop" / "__init__.py").write_text(text)
            names.append(str(tmp_path / name))
        samples = [
            {"name": "one", "path": "a", "options": {}},
            {"name": "two", "path": "b", "options": {"compress_to_fp16": True}},
        ]
        (tmp_path / "samples.json").write_text(json.dumps(samples))
        given = ["--base", names[0], "--other", names[1], "--models", str(tmp_path), *arguments]
        return main(given), capsys.readouterr().out

    return run


def test_equal_output_is_equal(run):
    code, printed = run([(b"12", "b"), (b"12", "b")])
    assert code == 0 and "2 models, 1 of them refused: 0 differ" in printed


def test_other_weights_and_another_refusal_are_differences(run):
    code, printed = run([(b"12", ""), (b"13", "b")])
    assert code == 1 and "one\n  bin: 2 and 2 bytes, first at 1" in printed
    assert "two compress_to_fp16=True\n  only the other refuses: ValueError: no such operator" in printed


def test_an_expected_difference_is_allowed(run, tmp_path):
    listed = tmp_path / "expected.toml"
    listed.write_text('[[expected]]\nmodels = "*"\nreason = "other weights"\n')
    code, printed = run([(b"12", ""), (b"1", "")], "--allow", str(listed))
    assert code == 0 and "expected: 2 of *: other weights" in printed


def test_an_expected_difference_that_does_not_occur_fails(capsys):
    assert report(1, 0, [Difference("a", "x")], [Expected("a", "why"), Expected("b", "why")]) == 1
    assert "expected, but equal: b" in capsys.readouterr().out


def test_the_first_line_that_differs_is_shown(tmp_path):
    before, after = tmp_path / "a.xml", tmp_path / "b.xml"
    before.write_text("<net>\n\t<x/>\n</net>")
    after.write_text("<net>\n\t<why/>\n</net>")
    expected = "xml: 18 and 20 bytes, first at line 2\n    < <x/>\n    > <why/>"
    assert difference_of(before, after) == expected
    after.write_text("<net>\n\t<x/>\n</net>\n<more/>")
    assert difference_of(before, after) == "xml: 18 and 26 bytes, one has more lines"


def test_equal_weights_that_go_on_are_shown(tmp_path):
    before, after = tmp_path / "a.bin", tmp_path / "b.bin"
    before.write_bytes(b"12")
    after.write_bytes(b"123")
    assert difference_of(before, after) == "bin: 2 and 3 bytes, first at 2"
