"""The pages that the tests look at, each made once by the command line."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

import onnx

from mo_loop.transforms.pipelines import LOOPS
from tests import ROOT
from tests.browser import shown_models
from tests.cli.commands import mo_loop

LOOPS_STAY = [f"--disable-pass={each.__name__}" for each in LOOPS]
"""Flags of conversions: the pages show loops."""


class MadePages:
    """Pages in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def recurrent(self) -> Path:
        """The dump of the model of docs/dump.md."""
        text = (ROOT / "docs" / "dump.md").read_text("utf-8")
        block = re.search(r"^```python\n(import numpy.*?)^```$", text, re.MULTILINE | re.DOTALL)
        assert block is not None
        model = self.folder / "recurrent.onnx"
        exec(block[1].replace('"recurrent.onnx"', "model_file"), {"model_file": model})
        return self.dump(model)

    @cached_property
    def recurrent_onnx(self) -> Path:
        """That model as it is in its file."""
        assert self.recurrent.is_file()
        return self.view(self.folder / "recurrent.onnx")

    @cached_property
    def nested(self) -> Path:
        """The dump of loops, branches and their bodies in each other."""
        return self.dump(shown_models.nested(self.folder / "nested.onnx"))

    @cached_property
    def nested_onnx(self) -> Path:
        """The same model as ONNX, where bodies read values of the graphs around them."""
        return self.view(shown_models.nested(self.folder / "nested.onnx"))

    @cached_property
    def large(self) -> Path:
        """The dump of 20,000 nodes."""
        return self.dump(shown_models.layered(self.folder / "large.onnx", layers=1000))

    @cached_property
    def modules(self) -> Path:
        """A model whose metadata has the modules around each node: 24 equal layers."""
        return self.view(shown_models.modules(self.folder / "modules.onnx", layers=24))

    @cached_property
    def converted_modules(self) -> Path:
        """The dump of such a model: 9 equal layers."""
        return self.dump(shown_models.modules(self.folder / "converted_modules.onnx", layers=9))

    @cached_property
    def tensorflow(self) -> Path:
        """A model of TensorFlow, whose names have scopes."""
        return self.view(ROOT / "tests" / "models" / "tensorflow" / "lstm_masked.onnx")

    @cached_property
    def blocks_of_steps(self) -> Path:
        """Two loops with 16 steps in each iteration, as a conversion writes them."""
        path = self.folder / "blocks_of_steps.txt"
        path.write_text(shown_models.BLOCKS_OF_STEPS, "utf-8")
        return self.view(path)

    @cached_property
    def hostile(self) -> Path:
        """The dump of a model whose names are markup, scripts and more."""
        return self.dump(shown_models.hostile(self.folder / "<img src=x onerror=alert(1)>&amp;.onnx"))

    @cached_property
    def unknown_operators(self) -> Path:
        """A model whose operators, domains and attributes have such names."""
        return self.view(shown_models.unknown_operators(self.folder / "unknown.onnx"))

    @cached_property
    def difference(self) -> Path:
        """The page of the differences between two models."""
        old, new = shown_models.nested(self.folder / "old.onnx"), self.folder / "new.onnx"
        shown_models.nested(new, {"Mul (e, scale)": "Add (e, scale)", "{0.5}": "{0.25}"})
        return self.view(old, new)

    @cached_property
    def difference_of_metadata(self) -> Path:
        """Two models that differ in three entries of their metadata."""
        old, new = shown_models.nested(self.folder / "told.onnx"), self.folder / "retold.onnx"
        model = onnx.load(old)
        for key in ("first", "second", "third"):
            model.metadata_props.add(key=key, value=key)
        onnx.save(model, new)
        return self.view(old, new)

    @cached_property
    def layers(self) -> Path:
        """A model and its IR: which layers each node became."""
        model = shown_models.nested(self.folder / "mapped.onnx")
        _run("convert", model, "-o", model.with_suffix(".xml"), *LOOPS_STAY)
        return self.view(model, model.with_suffix(".xml"))

    @cached_property
    def heated(self) -> Path:
        """The differences of an IR whose Scan has another weight, with those of each iteration."""
        model, other = shown_models.nested(self.folder / "heated.onnx"), self.folder / "heated_other.onnx"
        shown_models.nested(other, {"3.0}": "3.5}"})
        ir, target = other.with_suffix(".xml"), self.folder / "heated"
        _run("convert", other, "-o", ir, *LOOPS_STAY)
        _run("verify", model, ir, "--layers", "--dump", target, code=1)
        return target / "index.html"

    def dump(self, model: Path) -> Path:
        """The page of a conversion."""
        target = self.folder / model.stem
        _run("convert", model, "-o", model.with_suffix(".xml"), "--dump", target, *LOOPS_STAY)
        return target / "index.html"

    def view(self, *models: Path) -> Path:
        """The page of a model, or of two."""
        target = self.folder / f"{'-'.join(each.stem for each in models)}.html"
        _run("view", *models, "-o", target)
        return target


def _run(*arguments: object, code: int = 0) -> None:
    done = mo_loop(*arguments)
    assert done.returncode == code, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
