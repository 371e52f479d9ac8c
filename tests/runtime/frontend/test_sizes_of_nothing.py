"""Tensors without elements that the runtime computes incorrectly in the obvious form: one small model for each rule."""

import pytest

from tests.cases import read_cases

pytestmark = pytest.mark.keeps_loops


read_cases(globals())
