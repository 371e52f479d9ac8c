"""Damage of an .xml as text: document types, entities, instructions, encodings, depth, size, bytes."""

import re
from collections.abc import Callable
from random import Random

from tests.fuzz.damage.octets import damaged_bytes

_LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
DOCUMENT_TYPES = ("<!DOCTYPE net>", "<!DOCTYPE net [", '<!DOCTYPE net SYSTEM "http://127.0.0.1:9/x.dtd">',
                  '<!DOCTYPE net [<!ENTITY e SYSTEM "file:///etc/hostname">]>', '<!DOCTYPE net [<!ENTITY e "x">]>',
                  f'<!DOCTYPE net [<!ENTITY l0 "lol">{_LAUGHS}]>', f'<!DOCTYPE net [<!ENTITY e "{"x" * 50_000}">]>',
                  '<!DOCTYPE net [<!ENTITY % p SYSTEM "file:///etc/hostname"> %p;]>',
                  '<!DOCTYPE net [<!ENTITY e "&e;">]>', '<!DOCTYPE net [<!ATTLIST layer id CDATA "0">]>',
                  '<!DOCTYPE net [<!ELEMENT net ANY><!ATTLIST layer id ID #REQUIRED>]>')
USES = ("&e;", "&l9;", "&e;" * 2000, "&amp;e;", "&#0;", "&#x1F;", "&#xFFFFFFFF;", "&#xD800;", "&#65;", "&lt;net&gt;",
        "&")
PIECES = ("<!-- x -->", "<!--", "<?xml-stylesheet href='file:///etc/hostname'?>", "<?php x ?>", "<![CDATA[1]]>",
          "<![CDATA[", "\0", "\x01", "\ufffe",
          "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' href='model.xml'/>", "<x:y/>", "<a xmlns='urn:x'/>",
          "xmlns='urn:x' ", "xml:base='http://127.0.0.1:9/' ", "xml:space='preserve' ", "id='0' id='1' ", "</net>",
          "<net>", "]]>", "<", ">", '"', "'", "&", "\u202e", "\U0001f600")
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "utf-7", "cp037")
DECLARED = ("utf-16", "UTF-8", "ascii", "iso-8859-1", "unknown", "", "utf-7", "ebcdic-cp-us", "UCS-4", "\u00e9",
            "a" * 500)
DEPTHS = (10, 100, 200, 240, 250, 260, 300, 2000)


def damaged_document(xml: bytes, draw: Random, other: bytes) -> bytes:
    """The bytes of an .xml with one damage of its text; `other` is a file that pieces are taken from."""
    return draw.choices(_DAMAGES, _SHARES)[0](xml, draw, other)


def _bytes(xml: bytes, draw: Random, other: bytes) -> bytes:
    return damaged_bytes(xml, draw, other)


def _document_type(xml: bytes, draw: Random, other: bytes) -> bytes:
    text = xml.decode().replace("<net", draw.choice(DOCUMENT_TYPES) + "<net", 1)
    return _used(text, draw.choice(USES), draw).encode() if draw.random() < 0.7 else text.encode()


def _entity(xml: bytes, draw: Random, other: bytes) -> bytes:
    return _used(xml.decode(), draw.choice(USES), draw).encode()


def _used(text: str, piece: str, draw: Random) -> str:
    """`piece` in the place of a value, or of the text of an element."""
    places = [each.span(1) for each in re.finditer(r'="([^"]*)"|>(\d+)<', text) if each.span(1)[0] >= 0]
    start, end = draw.choice(places) if places else (0, 0)
    return text[:start] + piece + text[end:]


def _piece(xml: bytes, draw: Random, other: bytes) -> bytes:
    """A piece of XML between two elements, after a name, or anywhere."""
    text = xml.decode()
    places = [each.start() for each in re.finditer(draw.choice(("<", " ", "\n", ">", "")), text)]
    at = draw.choice(places) if places else 0
    return (text[:at] + draw.choice(PIECES) + text[at:]).encode()


def _encoded(xml: bytes, draw: Random, other: bytes) -> bytes:
    """Another encoding, declared or not."""
    text = xml.decode()
    if draw.random() < 0.6:
        text = re.sub(r"<\?xml[^>]*\?>", f'<?xml version="1.0" encoding="{draw.choice(DECLARED)}"?>', text)
    return text.encode(draw.choice(ENCODINGS), "replace") if draw.random() < 0.6 else text.encode()


def _deep(xml: bytes, draw: Random, other: bytes) -> bytes:
    """Many elements in each other."""
    text, depth = xml.decode(), draw.choice(DEPTHS)
    start, end = draw.choice((
        ("<rt_info>" + "<info name='a'>" * depth, "</info>" * depth + "</rt_info>"),
        ("<meta_data>" + "<a>" * depth, "</a>" * depth + "</meta_data>"),
        ("<x>" * depth, "</x>" * depth),
    ))
    places = [each.start() for each in re.finditer("</net>|</(?:layer|port|body)>|<rt_info", text)]
    at = draw.choice(places) if places else 0
    text = text[:at] + start + end + text[at:]
    return re.sub(r"<rt_info />|<rt_info>\s*</rt_info>", "", text).encode()


def _bodies(xml: bytes, draw: Random, other: bytes) -> bytes:
    """The bodies in each other, more than a reader has to accept."""
    depth = draw.choice((2, 20, 31, 32, 33, 40, 200))
    tag, type_, version = draw.choice((("body", "TensorIterator", 1), ("body", "Loop", 5), ("then_body", "If", 8)))
    maps = draw.choice(("<port_map/><back_edges/>", "<then_port_map/><else_port_map/>", ""))
    start = f'<layers><layer id="0" name="n" type="{type_}" version="opset{version}">{maps}<{tag}>'
    end = f"</{tag}></layer></layers><edges/>"
    return f'<net name="n" version="11">{start * depth}<layers/><edges/>{end * depth}</net>'.encode()


def _long(xml: bytes, draw: Random, other: bytes) -> bytes:
    """A long value, or many attributes, or many elements."""
    text, kind = xml.decode(), draw.randrange(5)
    if kind == 0:
        text = _used(text, "x" * draw.choice((1000, 70_000, 70_000, 11_000_000)), draw)
    elif kind == 1:
        text = _used(text, "9" * draw.choice((20, 310, 4300, 4301, 100_000)), draw)
    elif kind == 2:
        names = " ".join(f'a{n}="{n}"' for n in range(draw.choice((100, 3000))))
        text = text.replace("<data", f"<data {names}", 1)
    elif kind == 3:
        text = text.replace("<dim>", "<dim>1</dim>" * draw.choice((9, 65, 3000)) + "<dim>", 1)
    else:
        text = _used(text, ",".join(["1"] * draw.choice((65, 10_000))), draw)
    return text.encode()


def _other_kind(xml: bytes, draw: Random, other: bytes) -> bytes:
    """A file that is not IR."""
    return draw.choice(
        (b"", b" \n", b"\0" * 64, b"<net/>", b"<net version='11'><layers/></net>", b"version https://git-lfs.github.com",
         b"<html><body/></html>", other + xml, b"\xff\xfe" + xml, b"\x1f\x8b\x08\x00" + xml, b"%PDF-1.4", xml * 2)
    )


_Damage = Callable[[bytes, Random, bytes], bytes]
_TABLE: tuple[tuple[_Damage, int], ...] = ((_bytes, 12), (_document_type, 4), (_entity, 4), (_piece, 8), (_encoded, 4),
                                           (_deep, 3), (_bodies, 2), (_long, 3), (_other_kind, 1))
_DAMAGES = [damage for damage, _ in _TABLE]
_SHARES = [share for _, share in _TABLE]
