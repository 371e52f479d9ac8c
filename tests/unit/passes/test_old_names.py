"""The old names of passes, wherever a pass is named by a text."""

import importlib
import inspect
import pkgutil

import pytest

from mo_loop import transforms
from mo_loop.transforms.config import OLD_NAMES, PassConfig, name_of
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.manager import Manager
from mo_loop.transforms.pipelines import default_pipeline
from mo_loop.transforms.selection import Placed, Selection, arranged

CLASSES = {
    name
    for module in pkgutil.walk_packages(transforms.__path__, "mo_loop.transforms.")
    for name, value in vars(importlib.import_module(module.name)).items()
    if inspect.isclass(value) and issubclass(value, FunctionPass)
}


def renamed(old: str) -> pytest.WarningsRecorder:
    return pytest.deprecated_call(match=f"the pass {old} is now called {OLD_NAMES[old]};")


@pytest.mark.parametrize("old", OLD_NAMES)
def test_an_old_name_gives_the_present_one(old: str) -> None:
    assert old not in CLASSES and OLD_NAMES[old] in CLASSES
    with renamed(old):
        assert name_of(old) == OLD_NAMES[old]


def test_in_a_configuration() -> None:
    config = PassConfig()
    with renamed("EmptyLoops"):
        config.disable("EmptyLoops")
    with renamed("Pad12ToPad1"):
        config.explain("Pad12ToPad1")
    passes = {each.name: each for each in default_pipeline()}
    downgrades = {each.name: each for each in passes["Downgrade"].passes}
    assert not config.is_enabled(passes["EliminateEmptyLoops"]) and config.is_enabled(passes["LoopToTI"])
    assert config.explains(downgrades["ConvertPad12ToPad1"])


def test_in_a_selection() -> None:
    with renamed("BindConstants"):
        chosen = Selection(Manager(default_pipeline()), stop_after="BindConstants")
    assert chosen.runs("PushConstantToSubgraph") and not chosen.runs("GuardTripCounts")
    with renamed("TellSizes"):
        chosen.require("TellSizes")


def test_as_the_place_of_an_extension() -> None:
    new = type("New", (FunctionPass,), {})
    with renamed("SettleLoops"):
        names = [each.name for each in arranged(default_pipeline(), [Placed(new, after="SettleLoops")])]
    assert names[names.index("New") - 1] == "CopyControlOutputs"
