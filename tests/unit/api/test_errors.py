"""Errors are immutable: more knowledge makes another error with the same code, cause and traceback."""

import pickle
import traceback

import pytest

from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError, TypeError_, UnsupportedError
from mo_loop.origin import Origin

ADD = Origin(("loop", "step"), "add", "Add")


def raised(error: MoLoopError) -> MoLoopError:
    """The error after it has passed through a function."""
    try:
        raise error from KeyError("lost")
    except MoLoopError as found:
        return found


def test_at_makes_another_error() -> None:
    error = TypeError_("shapes differ", code="ML239", why="because")
    located = error.at(ADD, hint="reshape it", during="the pass P")
    assert type(located) is TypeError_ and located is not error
    assert (located.code, located.message, located.why) == ("ML239", "shapes differ", "because")
    assert (located.origin, located.where) == (ADD, "loop/step/add")
    assert (located.hint, located.during) == ("reshape it", "the pass P")
    assert (error.origin, error.where, error.hint, error.during) == (None, "", "", "")


def test_at_keeps_what_is_not_given() -> None:
    error = UnsupportedError("no", where=ADD, why="w", hint="h", during="d", code="ML303").at(message="not yet")
    assert error.args == ("not yet",)
    assert (error.origin, error.why, error.hint, error.during, error.code) == (ADD, "w", "h", "d", "ML303")


def test_a_place_outside_of_models_is_text() -> None:
    error = UnsupportedError("no", where="extension.py:3").at(hint="h")
    assert (error.origin, error.where) == (None, "extension.py:3")


def test_cause_and_traceback_are_kept() -> None:
    error = raised(TypeError_("shapes differ"))
    with pytest.raises(TypeError_) as caught:
        try:
            raise error
        except TypeError_ as found:
            raise found.at(ADD) from found.__cause__
    assert isinstance(caught.value.__cause__, KeyError)
    shown = "".join(traceback.format_exception(caught.value))
    assert "in raised" in shown and shown.count("shapes differ") == 1


def test_of_several_each_keeps_its_place() -> None:
    other = Origin((), "other", "Mul")
    group = ConversionErrors([TypeError_("a"), TypeError_("b", where=ADD)]).at(other, during="the pass P")
    assert [each.origin for each in group.errors] == [other, ADD]
    assert [each.during for each in group.errors] == ["the pass P"] * 2 and "where: other" in str(group)


def test_a_subclass_with_arguments_of_its_own() -> None:
    class Special(TypeError_):
        def __init__(self, size: int) -> None:
            super().__init__(f"of size {size}")
            self.size = size

    error = Special(3).at(ADD)
    assert (type(error), error.size, error.message, error.where) == (Special, 3, "of size 3", "loop/step/add")


def test_an_error_goes_to_another_process() -> None:
    error = pickle.loads(pickle.dumps(TypeError_("shapes differ", where=ADD, code="ML239", hint="h")))
    assert (error.origin, error.code, error.hint) == (ADD, "ML239", "h")


def test_a_warning_carries_an_origin() -> None:
    warning = ConversionWarning("assumed", where=ADD, code="ML510")
    assert (warning.origin, warning.where) == (ADD, "loop/step/add")
