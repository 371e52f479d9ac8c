"""Files that are not models, and models whose weights lie elsewhere."""

import gzip
import io
import os
import pickle
import socket
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.hostile.cases import add_case, add_models, case, external, model, node, stored

EXTERNAL = "external data"
TRAVERSAL = "CVE-2022-25882 CVE-2024-27318 CVE-2025-51480"
LINKS = "CVE-2026-27489"


class _Runs:
    """An object whose unpickling would run code."""

    def __reduce__(self) -> object:
        return os.mkdir, ("unpickled",)


def _archive() -> bytes:
    """A tar file with a member outside of its folder."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("../../outside.txt"))
    return data.getvalue()


def _zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../outside.txt", bytes(1 << 20))
    return data.getvalue()


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def _nested(depth: int) -> bytes:
    """A graph in the attribute of a node, again and again: field 7 graph, 1 node, 5 attribute, 6 graph."""
    inner = b""
    for _ in range(depth):
        inner = _field(1, _field(5, _field(6, inner)))
    return _field(7, inner)


whole = model([node("Relu")]).SerializeToString()

add_models("files of other kinds", {
    "empty": lambda: b"", "one_byte": lambda: b"\x08", "zeros": lambda: bytes(4096), "text": lambda: b"no model\n" * 50,
    "html": lambda: b"<!doctype html><script>alert(1)</script>", "json": lambda: b'{"graph": {}}',
    "git_lfs_pointer": lambda: b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n",
    "gzip_bomb": lambda: gzip.compress(bytes(50 << 20)), "shell_script": lambda: b"#!/bin/sh\ntouch ran\n",
})
add_case("files of other kinds", "pickle", lambda folder: stored(folder, pickle.dumps(_Runs())))
add_case(
    "files of other kinds", "tar_with_traversal", lambda folder: stored(folder, _archive()),
    "CVE-2024-5187 CVE-2024-7776",
)
add_case("files of other kinds", "zip_with_traversal", lambda folder: stored(folder, _zip()))

add_models("damaged protobuf", {
    **{
        f"truncated_at_{share}_percent": lambda share=share: whole[: len(whole) * share // 100]
        for share in (10, 50, 90)
    },
    "endless_varint": lambda: b"\x08" + b"\xff" * 64, "length_of_two_gigabytes": lambda: b"\x3a" + _varint(2**31 - 1),
    "length_of_2_to_the_63": lambda: b"\x3a" + b"\xff" * 9 + b"\x01", "unknown_wire_type": lambda: b"\x3f" * 30,
    "unbalanced_groups": lambda: b"\x3b" * 5000,
    "output_that_is_not_utf8": lambda: whole.replace(b"\x01y", b"\x01\xff"),
    "graph_of_a_wrong_wire_type": lambda: b"\x38\x01",
})
add_case("damaged protobuf", "messages_nested_10000_deep", lambda folder: stored(folder, _nested(10000)),
         "CVE-2025-4565 CVE-2024-7254")
add_case("damaged protobuf", "messages_nested_60_deep", lambda folder: stored(folder, _nested(20)), "CVE-2025-4565")
add_case("damaged protobuf", "a_million_unknown_fields",
         lambda folder: stored(folder, whole + b"\xf8\x3f\x01" * 1_000_000), "CVE-2022-1941")


# -- where the weights are

for name, location in {
    "absolute": "/etc/passwd", "parent": "../secret.bin", "parents": "../" * 40 + "etc/passwd",
    "parent_inside": "sub/../../secret.bin", "backslashes": "..\\..\\secret.bin", "empty": "", "dot": ".",
    "nul": "data.bin\0/etc/passwd", "url": "http://127.0.0.1:9/data.bin", "file_url": "file:///etc/passwd",
    "unc": "\\\\host\\share\\data.bin", "drive": "C:\\data.bin", "device": "/dev/zero", "memory_of_the_process":
    "/proc/self/mem", "environment": "/proc/self/environ", "home": "~/data.bin", "variable": "$HOME/data.bin",
    "pipe_of_a_shell": "|touch ran", "very_long": "a" * 5000, "newline": "data\n.bin",
}.items():
    add_case(EXTERNAL, f"location_{name}", lambda folder, location=location: stored(folder, external(location)),
             TRAVERSAL if ".." in location or location.startswith("/") else "")


def _spans() -> None:
    """Spans that do not lie in the file of 24 bytes."""
    for name, entries in {
        "negative_offset": {"offset": -4}, "offset_behind_the_end": {"offset": 4}, "offset_of_2_to_the_63": {
        "offset": 2**63}, "offset_of_2_to_the_70": {"offset": 2**70}, "offset_that_wraps": {"offset": 2**64 - 24},
        "length_too_large": {"length": 2**40}, "length_zero": {"length": 0}, "negative_length": {"length": -24},
        "offset_in_words": {"offset": "ten"}, "offset_with_a_sign_and_spaces": {"offset": " +1_0 "},
        "offset_of_5000_digits": {"offset": "9" * 5000}, "offset_in_arabic_digits": {"offset": "\u0664"},
        "keys_that_are_attributes": {"__class__": "x", "load": "y", "offset": 1},
    }.items():

        def make(folder: Path, entries: dict[str, object] = entries) -> Path:
            (folder / "data.bin").write_bytes(bytes(24))
            return stored(folder, external(**entries))

        add_case(EXTERNAL, f"span_{name}", make, "CVE-2026-34445" if name.startswith("keys") else "")


_spans()


@case(EXTERNAL)
def weights_in_the_model_itself(folder: Path) -> Path:
    return stored(folder, external("model.onnx"))


@case(EXTERNAL)
def no_location(folder: Path) -> Path:
    return stored(folder, external(None))


@case(EXTERNAL)
def missing_file(folder: Path) -> Path:
    return stored(folder, external())


@case(EXTERNAL)
def a_folder_in_the_place_of_the_data(folder: Path) -> Path:
    (folder / "data.bin").mkdir()
    return stored(folder, external())


@case(EXTERNAL)
def shorter_than_declared(folder: Path) -> Path:
    (folder / "data.bin").write_bytes(bytes(23))
    return stored(folder, external())


if sys.platform != "win32":

    @case(EXTERNAL, cves=LINKS)
    def link_to_a_file_outside(folder: Path) -> Path:
        (folder / "data.bin").symlink_to("/etc/passwd")
        return stored(folder, external())

    @case(EXTERNAL, cves=LINKS)
    def link_to_a_link_outside(folder: Path) -> Path:
        (folder / "other").symlink_to("/etc/passwd")
        (folder / "data.bin").symlink_to("other")
        return stored(folder, external())

    @case(EXTERNAL, cves=LINKS)
    def linked_folder_outside(folder: Path) -> Path:
        (folder / "sub").symlink_to("/etc")
        return stored(folder, external("sub/passwd"))

    @case(EXTERNAL, cves="CVE-2026-34446")
    def second_name_of_a_file_outside(folder: Path) -> Path:
        os.link(folder.parent / "secret.bin", folder / "data.bin")
        return stored(folder, external())

    @case(EXTERNAL)
    def links_in_a_circle(folder: Path) -> Path:
        (folder / "data.bin").symlink_to("data.bin")
        return stored(folder, external())

    @case(EXTERNAL)
    def named_pipe(folder: Path) -> Path:
        os.mkfifo(folder / "data.bin")
        return stored(folder, external())

    @case(EXTERNAL)
    def link_to_an_endless_device(folder: Path) -> Path:
        (folder / "data.bin").symlink_to("/dev/zero")
        return stored(folder, external())

    @case("files of other kinds")
    def model_that_is_a_link_in_a_circle(folder: Path) -> Path:
        (folder / "model.onnx").symlink_to("model.onnx")
        return folder / "model.onnx"

    @case("files of other kinds")
    def model_that_is_a_folder(folder: Path) -> Path:
        (folder / "model.onnx").mkdir()
        return folder / "model.onnx"

    @case("files of other kinds")
    def model_that_is_an_endless_device(folder: Path) -> Path:
        (folder / "model.onnx").symlink_to("/dev/zero")
        return folder / "model.onnx"

    @case("files of other kinds")
    def model_that_is_a_socket(folder: Path) -> Path:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.relpath(folder / "model.onnx"))  # the length of the path of a socket is limited
        return folder / "model.onnx"
