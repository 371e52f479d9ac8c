"""Hostile .xml and .bin files for the IR reader."""

import sys
from pathlib import Path

from tests.hostile.cases import add_case

_NET = """<?xml version="1.0"?>{doctype}
<net name="{name}" version="{version}">
	<layers>
		<layer id="0" name="x" type="Parameter" version="opset1">
			<data shape="{shape}" element_type="f32" />
			<output><port id="0" precision="FP32"><dim>2</dim></port></output>
		</layer>
		<layer id="1" name="w" type="Const" version="opset1">
			<data element_type="{type}" shape="{dims}" offset="{offset}" size="{size}" />
			<output><port id="0" precision="FP32"><dim>2</dim></port></output>
		</layer>
		<layer id="{id}" name="y" type="{operation}" version="opset1">
			<input>
				<port id="0" precision="FP32"><dim>2</dim></port>
				<port id="1" precision="FP32"><dim>2</dim></port>
			</input>
			<output><port id="2" precision="FP32"><dim>2</dim></port></output>
		</layer>
		<layer id="3" name="r" type="Result" version="opset1">
			<input><port id="0" precision="FP32"><dim>2</dim></port></input>
		</layer>
	</layers>
	<edges>
		<edge from-layer="0" from-port="0" to-layer="2" to-port="0" />
		<edge from-layer="{source}" from-port="{port}" to-layer="2" to-port="1" />
		<edge from-layer="2" from-port="2" to-layer="3" to-port="0" />
		{more}
	</edges>
</net>
"""

PLAIN = {
    "doctype": "", "name": "g", "version": "11", "shape": "2", "type": "f32", "dims": "2", "offset": "0", "size": "8",
    "id": "2", "operation": "Add", "source": "1", "port": "0", "more": "",
}
_LAUGHS = "".join(f'<!ENTITY l{each} "{f"&l{each - 1};" * 10}">' for each in range(1, 10))
HARMFUL = {
    "billion_laughs": ({"doctype": f'<!DOCTYPE net [<!ENTITY l0 "ha">{_LAUGHS}]>', "name": "&l9;"}, "CVE-2003-1564"),
    "external_entity": ({"doctype": '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/passwd">]>', "name": "&e;"}, ""),
    "entity_of_the_network": (
        {"doctype": '<!DOCTYPE net SYSTEM "http://127.0.0.1:9/x.dtd">'}, ""
    ),
    "parameter_entity": (
        {"doctype": '<!DOCTYPE net [<!ENTITY % e SYSTEM "file:///etc/passwd"> %e;]>'}, ""
    ),
    "offset_behind_the_end": ({"offset": "4"}, ""), "negative_offset": ({"offset": "-8"}, ""),
    "offset_of_2_to_the_64": ({"offset": str(2**64)}, ""), "size_of_2_to_the_62": ({"size": str(2**62)}, ""),
    "size_in_words": ({"size": "eight"}, ""), "size_of_5000_digits": ({"size": "9" * 5000}, ""),
    "shape_of_2_to_the_62": ({"dims": f"{2**62},4"}, ""), "negative_shape": ({"dims": "-2"}, ""),
    "repeated_layer": ({"id": "1"}, ""), "edge_from_nowhere": ({"source": "99"}, ""),
    "edge_from_a_port_that_does_not_exist": ({"port": "77"}, ""), "layer_number_in_words": ({"id": "two"}, ""),
    "version_of_2_to_the_62": ({"version": str(2**62)}, ""), "cycle": ({"source": "2", "port": "2"}, ""),
    "edge_into_a_port_twice": (
        {"more": '<edge from-layer="1" from-port="0" to-layer="2" to-port="0" />'}, ""
    ),
}


KEPT = {"unknown_element_type": {"type": "f1000"}, "unknown_operation": {"operation": "Nothing"}}
"""Layers that are kept as they are, for a runtime that knows them."""


def _pair(folder: Path, xml: str | bytes, data: bytes = bytes(8)) -> Path:
    path = folder / "model.xml"
    path.write_bytes(xml.encode() if isinstance(xml, str) else xml)
    path.with_suffix(".bin").write_bytes(data)
    return path


for _name, (_changes, _cves) in HARMFUL.items():
    add_case("IR files", _name, lambda folder, changes=_changes: _pair(folder, _NET.format(**PLAIN | changes)),
             _cves)


for _name, _changes in KEPT.items():
    add_case("IR files", _name, lambda folder, changes=_changes: _pair(folder, _NET.format(**PLAIN | changes)))


def _deep(folder: Path) -> Path:
    return _pair(folder, '<net name="g" version="11">' + "<layers>" * 100_000)


def _without_data(folder: Path) -> Path:
    path = _pair(folder, _NET.format(**PLAIN))
    path.with_suffix(".bin").unlink()
    return path


add_case("IR files", "elements_nested_100000_deep", _deep, "CVE-2022-2309")
add_case("IR files", "missing_bin", _without_data)
add_case("IR files", "short_bin", lambda folder: _pair(folder, _NET.format(**PLAIN), bytes(7)))
add_case("IR files", "empty_xml", lambda folder: _pair(folder, ""))
add_case("IR files", "utf16", lambda folder: _pair(folder, _NET.format(**PLAIN).encode("utf-16")))
add_case("IR files", "nul_bytes", lambda folder: _pair(folder, _NET.format(**PLAIN).replace("Add", "A\0d")))
if sys.platform != "win32":

    def _linked(folder: Path) -> Path:
        path = _without_data(folder)
        path.with_suffix(".bin").symlink_to("/dev/zero")
        return path

    add_case("IR files", "bin_that_is_an_endless_device", _linked)
