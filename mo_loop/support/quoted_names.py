"""Names in the texts of options. In quotes, a name can have commas, brackets and all else that separates names.

>>> parts('logits,"split,1[0]"')
['logits', '"split,1[0]"']
>>> unquoted('"split,1[0]"'), unquoted("logits")
('split,1[0]', 'logits')
"""

from __future__ import annotations

import re

QUOTED = r"\"[^\"]*\"|'[^']*'"
"""A name in quotes; the other kind of quotes may be in it."""

_QUOTED = re.compile(rf"(?<![^,=\s])(?:{QUOTED})(?![^,=\s\[({{-])")
"""Where a name can be: an apostrophe within a name is none of the quotes."""


def masked(text: str) -> str:
    """The text with other characters in the place of those in quotes: what is found in it is at the same place."""
    return _QUOTED.sub(lambda found: "_" * len(found[0]), text)


def parts(text: str) -> list[str]:
    """The parts between commas, stripped; empty parts are left out."""
    commas = [found.start() for found in re.finditer(",", masked(text))]
    ends = zip([0, *(place + 1 for place in commas)], [*commas, len(text)], strict=True)
    return [part for start, end in ends if (part := text[start:end].strip())]


def unquoted(text: str) -> str:
    """A name without its quotes, if it has some."""
    return text[1:-1] if re.fullmatch(QUOTED, text) else text
