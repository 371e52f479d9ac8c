"""The rows of parameters of a test are one test: compiling takes most of the time of a row."""

from tests.running.rows import pytest_pycollect_makeitem as pytest_pycollect_makeitem
