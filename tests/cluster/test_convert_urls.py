"""convert, the library and the reading commands with models and outputs at URLs."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import numpy as np
import pytest

from mo_loop import convert_model, save_model
from mo_loop.batching.storage import stores
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import FileError, UsageError
from tests.cli.batches import good
from tests.cli.commands import ended, mo_loop
from tests.cluster.models import loads, numbers, with_external
from tests.cluster.s3_server import S3Server, Store


@pytest.fixture
def pair(tmp_path: Path, store: Store) -> tuple[bytes, bytes]:
    """The files of a local conversion; the model is at zoo/m.onnx."""
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx", 3))
    assert mo_loop("convert", tmp_path / "m.onnx", "-o", tmp_path / "local.xml", "-q").returncode == 0
    return (tmp_path / "local.xml").read_bytes(), (tmp_path / "local.bin").read_bytes()


@pytest.mark.parametrize(("target", "name"), [("ir/x.xml", "ir/x"), ("ir/", "ir/m"), ("ir/x", "ir/x"), ("", "m")])
def test_from_and_to_a_store(
    target: str, name: str, store: Store, pair: tuple[bytes, bytes], temporary: Path, tmp_path: Path
) -> None:
    url = f"{store.url}/{target}" if target else store.url
    done = ended(mo_loop("convert", f"{store.url}/zoo/m.onnx", "-o", url, "--format", "json",
                         "--mapping", f"{store.url}/map.json"))
    assert (store.read(f"{name}.xml"), store.read(f"{name}.bin")) == pair
    found = json.loads(done.stdout)
    assert found["model"] == f"{store.url}/zoo/m.onnx"
    assert found["xml"] == {"path": f"{store.url}/{name}.xml", "bytes": len(pair[0])}
    assert json.loads(store.read("map.json"))["model"] == f"{store.url}/zoo/m.onnx"
    assert list(temporary.rglob("room-*")) == []


@pytest.mark.parametrize("scheme", ["memory", "file"])
def test_other_stores(scheme: str, store: Store, pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    base = Location(f"{scheme}://{tmp_path}/base" if scheme == "file" else f"memory://{tmp_path.name}")
    stores.put(base / "m.onnx", store.read("zoo/m.onnx"))
    assert mo_loop("convert", f"{base.url}/m.onnx", "-o", f"{base.url}/ir/m.xml", "-q").returncode == 0
    assert (stores.read_whole(base / "ir/m.xml"), stores.read_whole(base / "ir/m.bin")) == pair


def test_a_url_into_a_file_and_a_file_to_a_url(store: Store, pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    done = mo_loop("convert", f"{store.url}/zoo/m.onnx", cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "m.xml").read_bytes() == pair[0]
    assert mo_loop("convert", tmp_path / "m.onnx", "-o", f"{store.url}/up.xml", "-q").returncode == 0
    assert (store.read("up.xml"), store.read("up.bin")) == pair


def test_external_data_of_a_url(store: Store, tmp_path: Path) -> None:
    store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("d.bin", 8 << 20, 1000)}))
    store.put("zoo/d.bin", numbers(4 << 20))
    assert mo_loop("convert", f"{store.url}/zoo/m.onnx", "-o", f"{store.url}/m.xml", "-q").returncode == 0
    (request,) = store.requests("GET", "d.bin")
    assert request.range == f"bytes={8 << 20}-{(8 << 20) + 3999}"
    (tmp_path / "d.bin").write_bytes(numbers(4 << 20))
    assert mo_loop("convert", tmp_path / "model.onnx", "-o", tmp_path / "m.xml", "-q").returncode == 0
    assert store.read("m.bin") == (tmp_path / "m.bin").read_bytes()
    assert loads(store.read("m.xml"), store.read("m.bin"), tmp_path)


def test_weights_of_the_model_are_not_overwritten(store: Store, tmp_path: Path) -> None:
    """By the command and by the library, which may not need the weights any more when they write."""
    store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("m.bin", 0, 1000)}))
    store.put("zoo/m.bin", numbers(1000))
    before = store.read("zoo/m.bin")
    source, target = f"{store.url}/zoo/m.onnx", f"{store.url}/zoo/m.xml"
    assert "holds weights of the model itself" in ended(mo_loop("convert", source, "-o", target), 2).stderr
    with pytest.raises(UsageError, match="holds weights of the model itself"):
        save_model(convert_model(source), target)
    assert store.read("zoo/m.bin") == before and store.names() == ["zoo/m.bin", "zoo/m.onnx"]


def test_external_data_that_is_missing(store: Store, tmp_path: Path) -> None:
    store.put("zoo/m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 10)}))
    done = mo_loop("convert", f"{store.url}/zoo/m.onnx", "-o", f"{store.url}/m.xml")
    assert done.returncode == 2 and "ML217" in done.stderr and store.names() == ["zoo/m.onnx"]


def test_a_failed_conversion_leaves_the_old_pair(store: Store, tmp_path: Path, pair: tuple[bytes, bytes]) -> None:
    store.put("m.xml", b"old")
    store.put("m.bin", b"old")
    store.put("zoo/bad.onnx", b"no model")
    assert mo_loop("convert", f"{store.url}/zoo/bad.onnx", "-o", f"{store.url}/m.xml").returncode == 2
    assert (store.read("m.xml"), store.read("m.bin")) == (b"old", b"old")


def test_the_library(store: Store, pair: tuple[bytes, bytes], temporary: Path, tmp_path: Path) -> None:
    model = convert_model(f"{store.url}/zoo/m.onnx")
    assert len(list(temporary.rglob("room-*"))) == 1
    save_model(model, f"{store.url}/lib.xml")
    assert (store.read("lib.xml"), store.read("lib.bin")) == pair
    del model
    gc.collect()
    assert list(temporary.rglob("room-*")) == []
    with pytest.raises(FileError):
        convert_model(f"{store.url}/zoo/none.onnx")
    with pytest.raises(UsageError):
        save_model(convert_model(tmp_path / "m.onnx"), f"{store.url}/lib.ir")


@pytest.mark.parametrize("command", ["check", "inspect"])
def test_commands_that_read(command: str, store: Store, pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    url = f"{store.url}/zoo/m.onnx"
    there, here = mo_loop(command, url), mo_loop(command, tmp_path / "m.onnx")
    assert there.returncode == here.returncode == 0
    assert there.stdout == here.stdout.replace(str(tmp_path / "m.onnx"), url)


def test_an_ir_is_read_with_its_weights(
    store: Store, pair: tuple[bytes, bytes], temporary: Path, tmp_path: Path
) -> None:
    """inspect, diff, view and verify read what convert has written at a URL, and show the URL instead of a copy."""
    for name, content in zip(("m.xml", "m.bin", "n.xml", "n.bin"), (*pair, *pair), strict=True):
        store.put(f"ir/{name}", content)
    model, one, other = (f"{store.url}/{name}" for name in ("zoo/m.onnx", "ir/m.xml", "ir/n.xml"))
    here = mo_loop("inspect", tmp_path / "local.xml").stdout.replace(str(tmp_path / "local.xml"), one)
    assert mo_loop("inspect", one).stdout == here.replace("local.bin", "m.bin")
    same = ended(mo_loop("diff", one, other, "--format", "json"))
    assert [json.loads(same.stdout)[side]["source"] for side in ("old", "new")] == [one, other]
    assert mo_loop("view", one, other, "-o", f"{store.url}/page.html").stdout.strip() == f"{store.url}/page.html"
    assert store.read("page.html").startswith(b"<!doctype html>")
    arrays = {"x": np.array([1, -2, 3], np.float32), "n": np.array(3)}
    for name, given in (("set", arrays), ("half", {"x": arrays["x"]})):
        np.savez(tmp_path / f"{name}.npz", **given)
        store.put(f"{name}.npz", (tmp_path / f"{name}.npz").read_bytes())
    half = mo_loop("verify", model, one, "--inputs", f"{store.url}/half.npz")
    assert half.returncode == 2 and f"{store.url}/half.npz has no value for the input 'n'" in half.stderr
    report = ended(mo_loop("verify", model, one, "--inputs", f"{store.url}/set.npz", "--format", "json"))
    found = json.loads(report.stdout)
    assert (found["model"], found["ir"], found["sets"][0]["name"]) == (model, one, f"{store.url}/set.npz")
    assert list(temporary.rglob("room-*")) == []


def test_an_ir_without_weights_is_told(store: Store, pair: tuple[bytes, bytes]) -> None:
    store.put("ir/m.xml", pair[0])
    done = mo_loop("verify", f"{store.url}/zoo/m.onnx", f"{store.url}/ir/m.xml")
    assert done.returncode == 2 and "m.bin" in done.stderr and "Traceback" not in done.stderr


def test_a_profile_and_a_model_to_reduce(store: Store, pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    url = f"{store.url}/zoo/m.onnx"
    flags = ("--profile-json", f"{store.url}/p.json", "-q")
    assert mo_loop("convert", url, "-o", f"{store.url}/x.xml", *flags).returncode == 0
    assert json.loads(store.read("p.json"))
    done = mo_loop("reduce", url, "-o", tmp_path / "small.onnx", "--if", "differs", "-j", "1")
    assert done.returncode == 2 and "does not show" in done.stderr  # the model was read: it agrees


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert", "{zoo}/m.onnx", "-o", "{zoo}/x.xml", "--dump", "{zoo}/dump"),
        ("convert", "{zoo}/m.onnx", "-o", "{zoo}/x.xml", "--visualize", "{zoo}/pictures"),
        ("convert", "{zoo}/m.onnx", "-o", "s3://a:b@{bucket}/x.xml"),
        ("verify", "{zoo}/m.onnx", "--save", "{zoo}/report"),
        ("reduce", "{zoo}/m.onnx", "-o", "{zoo}/small.onnx", "--if", "differs"),
    ],
)
def test_what_is_only_possible_here(arguments: tuple[str, ...], store: Store) -> None:
    store.put("zoo/m.onnx", b"x")
    done = mo_loop(*(each.format(zoo=f"{store.url}/zoo", bucket=store.name) for each in arguments))
    assert done.returncode == 2 and "ML287" in done.stderr and "Traceback" not in done.stderr


def test_query_strings_are_shown_nowhere(store: Store, server: S3Server, tmp_path: Path) -> None:
    """A signed https URL carries credentials."""
    store.put("m.onnx", good(tmp_path / "m.onnx"))
    store.client.put_bucket_policy(
        Bucket=store.name,
        Policy=json.dumps({
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": "*"}],
        }),
    )
    signed = store.client.generate_presigned_url("get_object", Params={"Bucket": store.name, "Key": "m.onnx"})
    assert "Signature" in signed
    done = ended(mo_loop("convert", signed, "-o", tmp_path / "signed.xml", "--mapping", tmp_path / "map.json"))
    missing = ended(mo_loop("convert", signed.replace("m.onnx", "n.onnx"), "-o", tmp_path / "signed.xml", "--debug"), 2)
    assert "Signature" not in done.stdout + done.stderr + missing.stdout + (tmp_path / "map.json").read_text()
    assert "Signature" not in missing.stderr


def test_a_folder_without_a_name(store: Store, pair: tuple[bytes, bytes], tmp_path: Path) -> None:
    """q//m.onnx has its weights at q//d.bin, and q/d.bin is another object."""
    store.put("q//m.onnx", with_external(tmp_path, {"a": ("d.bin", 0, 10)}))
    (tmp_path / "d.bin").write_bytes(numbers(10))
    assert mo_loop("convert", tmp_path / "model.onnx", "-o", tmp_path / "there.xml", "-q").returncode == 0
    store.put("q//d.bin", numbers(10))
    store.put("q/d.bin", numbers(10, 1))
    assert mo_loop("convert", f"{store.url}/q//m.onnx", "-o", f"{store.url}/o//m.xml", "-q").returncode == 0
    assert [key for key in store.names() if key.startswith("o")] == ["o//m.bin", "o//m.xml"]
    assert store.read("o//m.bin") == (tmp_path / "there.bin").read_bytes()
