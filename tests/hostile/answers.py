"""The right answer for each hostile file: the code of its error, from which its exit code follows.

A file that no line names is converted: it only looks hostile, or has nothing that an IR cannot express.
"""

import re
from collections.abc import Mapping

from tests.texts import texts

AT_URLS: Mapping[str, str] = {
    "location_backslashes": "ML216", "location_url": "ML216", "location_file_url": "ML216", "location_unc": "ML216",
    "location_drive": "ML216", "location_very_long": "ML286", "a_folder_in_the_place_of_the_data": "ML217",
    "links_in_a_circle": "ML286",
}
"""External data of models at file:// with another answer than at a path: an object of a store cannot have such a name,
or is not one."""

CODES = {
    (kind, name): part.split()[0]
    for kind, text in texts(__file__).items()
    for part in re.split(r"^(?=ML)", text, flags=re.MULTILINE)
    for name in part.split()[1:]
}
"""The class and the name of each refused file, and its code."""


def code_of(kind: str, name: str) -> str:
    """The code of a refused file; empty for one that is converted."""
    return CODES.get((kind, name), "")


def exit_code_of(code: str) -> int:
    """The exit code of the command for an error of this code."""
    return int(code[2]) if code else 0
