"""A seed and a number -> one damaged pair of .xml and .bin."""

import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from lxml import etree

from tests.fuzz.ir_damage.documents import damaged_document
from tests.fuzz.ir_damage.elements import damage_elements
from tests.fuzz.ir_damage.weight_files import FILE, damaged_weights, place

OF_DOCUMENT, OF_WEIGHTS = 0.2, 0.25
"""The shares of pairs whose text is damaged, and whose .bin is; of all others the elements are."""


@dataclass(frozen=True)
class Pair:
    """The bytes of an .xml and a .bin. `form` names what replaces the .bin (`weight_files`)."""

    xml: bytes
    data: bytes
    form: str = FILE

    def write(self, path: Path) -> None:
        """Write both, the .xml to `path`."""
        path.write_bytes(self.xml)
        place(self.data, self.form, path.with_suffix(".bin"))


def damaged_pair(seed: int, number: int) -> tuple[str, Pair]:
    """The name of the source, and the damaged pair of a number; the same for the same arguments."""
    draw = Random(f"ir damage/{seed}/{number}")
    (name, xml, data), (_, other_xml, other_data) = draw.choice(pairs()), draw.choice(pairs())
    kind, form = draw.random(), FILE
    if kind < OF_WEIGHTS:
        data, form = damaged_weights(data, draw, other_data)
    if kind > 1 - OF_DOCUMENT:
        return name, Pair(damaged_document(xml, draw, other_xml), data, form)
    if kind > OF_WEIGHTS / 2:
        root = etree.fromstring(xml)
        damage_elements(root, draw, etree.fromstring(other_xml))
        xml = etree.tostring(root, xml_declaration=True, encoding="utf-8")
    return name, Pair(xml, data, form)


# -- The pairs of .xml and .bin that are damaged: small ones, with every layer that the writer writes


ARCHIVE = Path(__file__).with_name("pairs.tar.xz")


@cache
def pairs() -> tuple[tuple[str, bytes, bytes], ...]:
    """(name, .xml, .bin) of each pair."""
    with tarfile.open(ARCHIVE) as archive:
        files = {entry.name: archive.extractfile(entry).read() for entry in archive}  # type: ignore[union-attr]
    names = [name.removesuffix(".xml") for name in files if name.endswith(".xml")]
    return tuple((name, files[f"{name}.xml"], files[f"{name}.bin"]) for name in names)
