"""URLs as values: their parts, and their text without credentials."""

import pickle
import re
from pathlib import Path

import pytest

from mo_loop.batching.storage.locations import Location, is_url, location_of, masked, place_of
from mo_loop.errors import UsageError
from tests.harness import raised


@pytest.mark.parametrize("text", ["s3://b/m.onnx", "gs://b", "https://host/m.onnx", "file:///data/m.onnx", "S3://B/m"])
def test_urls(text: str) -> None:
    assert is_url(text) and not is_url(Location(text)) and isinstance(place_of(text + "/x"), Location)


@pytest.mark.parametrize(
    "text", ["m.onnx", "C://models/m.onnx", "C:\\m.onnx", "a/b://c", "://x", "-", "", "C::s3", Path("x")]
)
def test_paths(text: str | Path) -> None:
    assert not is_url(text) and place_of(str(text)) == Path(text)


def test_parts() -> None:
    where = Location("s3://zoo/vision/model.v2.onnx")
    assert (where.scheme, where.name, where.suffix, where.stem) == ("s3", "model.v2.onnx", ".onnx", "model.v2")
    assert where.parent == Location("s3://zoo/vision") and where.parent.parent == Location("s3://zoo")
    assert where.parent.parent.parent == Location("s3://zoo") and Location("s3://zoo").name == ""
    assert where.parent / "w/d.bin" == Location("s3://zoo/vision/w/d.bin")
    assert Location("s3://zoo/").without_slash() / "m.onnx" == Location("s3://zoo/m.onnx")
    assert where.with_suffix(".xml").url == "s3://zoo/vision/model.v2.xml"
    assert where.relative_to(Location("s3://zoo")) == "vision/model.v2.onnx"
    assert where.relative_to(Location("s3://zo")) is None
    assert Location("file:///data/m.onnx").parent.url == "file:///data"
    assert pickle.loads(pickle.dumps(where)) == where and {where: 1}[Location(where.url)] == 1


def test_a_query_of_http_is_no_part_of_the_name() -> None:
    where = Location("https://host/a/m.onnx?X-Amz-Signature=1/2")
    assert (where.name, where.suffix) == ("m.onnx", ".onnx")
    assert (where.parent / "d.bin").url == "https://host/a/d.bin"
    assert Location("s3://b/q?x#y.onnx").name == "q?x#y.onnx"


@pytest.mark.parametrize(("url", "shown"), [
    ("s3://KEY:SECRET@zoo/m.onnx", "s3://***@zoo/m.onnx"),
    ("sftp://user@host/m.onnx", "sftp://***@host/m.onnx"),
    ("https://host/m.onnx?X-Amz-Signature=abc", "https://host/m.onnx?***"),
    ("s3://zoo/m.onnx?AWSAccessKeyId=abc&Signature=x", "s3://zoo/m.onnx?***"),
    ("abfs://container@account.net/m.onnx?sv=1&sig=abc", "abfs://container@account.net/m.onnx?***"),
    ("s3://zoo/q?a=b.onnx", "s3://zoo/q?a=b.onnx"), ("s3://KEY:SEC/RET@zoo/**", "s3://***@zoo/**"),
    ("s3://zoo/m?.onnx", "s3://zoo/m?.onnx"), ("s3://zoo/a@b/m.onnx", "s3://zoo/a@b/m.onnx"),
    ("abfs://container@account.net/m.onnx", "abfs://container@account.net/m.onnx"),
    ("abfs://a:secret@account.net/m.onnx", "abfs://***@account.net/m.onnx"),
])
def test_text_without_credentials(url: str, shown: str) -> None:
    where = Location(url)
    assert str(where) == f"{where}" == shown and repr(where) == f"Location({shown!r})" and where.url == url
    assert masked(f"GET {url} failed, '{url}'") == f"GET {shown} failed, '{shown}'"


def test_a_password_in_a_url_is_refused() -> None:
    caught = raised(UsageError, location_of, "s3://KEY:topsecret@zoo/m.onnx")
    assert caught.code == "ML287"
    assert "topsecret" not in str(caught) and "AWS_ACCESS_KEY_ID" in str(caught)


@pytest.mark.parametrize("url", ["s3://KEY:top/secret@zoo/**", "s3://KEY:1/secret@zoo/m", "https://u:top/secret@host/m"])
def test_a_password_with_a_slash_is_refused(url: str) -> None:
    caught = raised(UsageError, location_of, url)
    words = set(re.split(r"[^A-Za-z_]+", str(caught)))
    assert caught.code == "ML287" and not {"top", "secret", "KEY"} & words


@pytest.mark.parametrize(
    "url", ["https://host:8080/a@b.onnx", "s3://zoo/a:b@c.onnx", "sftp://[::1]:22/a@b", "file:///a:b@c.onnx"]
)
def test_signs_of_names_and_ports_are_no_password(url: str) -> None:
    assert str(location_of(url)) == url


@pytest.mark.parametrize("url", ["simplecache::s3://b/o", "zip://m.onnx::s3://b/a.zip"])
def test_a_chain_of_urls_is_refused(url: str) -> None:
    assert raised(UsageError, place_of, url, match="is a chain of URLs").code == "ML287"


@pytest.mark.parametrize(
    "url",
    ["s3://b/m.onnx", "s3://b/q//m.onnx", "s3://b//m.onnx", "s3://b/q///m.onnx", "s3://b/q/", "s3://b/q//", "file:///m",
     "s3://b/a::b.onnx", "https://host/a//m.onnx"],
)
def test_parts_put_together_are_the_url(url: str) -> None:
    where = Location(url)
    assert where.parent / where.name == where
    assert (where.with_suffix("") if not where.suffix else where.with_suffix(where.suffix)) == where
    assert where.relative_to(where.parent) == where.name


def test_the_scheme_is_written_in_lower_case() -> None:
    assert location_of("S3://Zoo/M.onnx").url == "s3://Zoo/M.onnx"


@pytest.mark.parametrize("url", ["s3://", "s3:///", "s3://b/\0"])
def test_a_url_of_nothing(url: str) -> None:
    raised(UsageError, location_of, url, match="names nothing")
