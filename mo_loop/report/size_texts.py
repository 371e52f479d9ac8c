"""Which sizes of a model's inputs may change, as rows of text, from the entry that the pass WriteSizes makes.

>>> size_rows({"x": "?,3,?,?", "h": "6,8", "n": "", "ids": "?,?"})
['x[?,3,?,?]: ? may change, 3 is checked', 'h[6,8]: 6, 8 are checked', 'all others may change']
>>> size_rows({"x": "?,?"}), size_rows({"x": "2,3"})
(['all may change'], ['none may change'])
"""

from __future__ import annotations

from collections.abc import Mapping

_FREE = ("?", "...")


def size_rows(sizes: Mapping[str, str]) -> list[str]:
    """A row for each input with a checked size, and one for all others; none if no input has a size."""
    listed = {name: text.split(",") for name, text in sizes.items() if text}
    if listed and all(each.isdecimal() for parts in listed.values() for each in parts):
        return ["none may change"]
    rows = []
    for name, parts in listed.items():
        checked = [each for each in dict.fromkeys(parts) if each not in _FREE]
        if checked:
            free = "? may change, " if "?" in parts else ""
            are = "is" if len(checked) == 1 else "are"
            rows.append(f"{name}[{sizes[name]}]: {free}{', '.join(checked)} {are} checked")
    if len(rows) < len(listed):
        rows.append("all others may change" if rows else "all may change")
    return rows
