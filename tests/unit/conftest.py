"""The rows of parameters of a test are one test: pytest's own work for a test takes longer than most rows."""

from tests.running.rows import pytest_pycollect_makeitem as pytest_pycollect_makeitem
