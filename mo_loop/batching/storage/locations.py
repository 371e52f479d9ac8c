"""Location: a URL, as a value. Info and Stamp: facts that distinguish contents of a file or object.

    where = Location("s3://zoo/vision/model.onnx")
    where.parent / "model.data"             # s3://zoo/vision/model.data
    where.name, where.suffix                # model.onnx, .onnx
    print(where)                            # without credentials; `where.url` is the URL itself

A URL is a scheme of two letters or more and `://`: C://models is a path of Windows. Its parts are kept exactly:
s3://zoo/a//m.onnx and s3://zoo/a/m.onnx are two objects.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mo_loop.errors import UsageError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(::[A-Za-z][A-Za-z0-9+.\-]+)*://")
_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+://[^\s'\"<>]+")
_CHAINED = re.compile(r"::[A-Za-z][A-Za-z0-9+.\-]+://")
_WITH_CONTAINER = ("abfs", "abfss")
"""Schemes whose part before the @ is the name of a container: abfs://container@account.dfs.core.windows.net/model.onnx."""

_WITH_QUERY = ("http", "https")
_WITH_SIGNED_QUERY = (*_WITH_QUERY, "az", "abfs", "abfss", "adl", "webdav", "webdavs", "dav", "davs")
"""Schemes of which people copy URLs with a signature. In the keys of other stores a ? is a letter like any other."""

_SIGNATURE = re.compile(
    r"(^|&)(x-(amz|goog)-[a-z-]+|signature|sig|awsaccesskeyid|googleaccessid|[a-z_-]*(token|secret|password))=", re.I
)
"""Names in a query that have credentials in any scheme: s3://zoo/m.onnx?AWSAccessKeyId=..."""

_WITH_HOST = (*_WITH_QUERY, "ftp", "ftps", "sftp", "ssh", "smb", "hdfs", "webhdfs", "webdav", "webdavs", "dav", "davs")
"""Schemes whose first part is a host, which may have a port."""

_PORT = re.compile(r"[^:@\[\]]*:\d*|\[[^\]@]*\](:\d*)?")


def is_url(text: object) -> bool:
    """Whether a path is a URL. A chain of them, such as simplecache::s3://zoo, is one that `location_of` refuses."""
    return isinstance(text, str) and _SCHEME.match(text) is not None


def place_of(text: str) -> PathOrUrl:
    """The Location of a URL, the Path of anything else.

    Raises:
        UsageError: the URL contains a password, or no object, or is a chain of URLs.
    """
    return location_of(text) if is_url(text) else Path(text)


def location_of(text: str) -> Location:
    """The Location of a URL that a user gave.

    Raises:
        UsageError: it contains a password, has nothing after its scheme, or is a chain of URLs.
    """
    scheme, mark, rest = text.partition("://")
    where = Location(scheme.lower() + mark + rest)
    if _has_password(where):
        raise UsageError(
            f"{where} contains credentials", code="ML287",
            why="a command line is read by other users, and kept in logs",
            hint=f"remove them: the store takes them from its own environment ({environment_of(where.scheme)})",
        )
    if "::" in scheme or _CHAINED.search(rest):
        raise UsageError(
            f"{where} is a chain of URLs", why="mo-loop reads and writes objects of one store", code="ML287",
            hint="give the URL after the last ::",
        )
    if not where.rest.strip("/") or "\0" in text:
        raise UsageError(f"{where} names nothing", code="ML287", hint="write, for example, s3://bucket/model.onnx")
    return where


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """A URL. Its text is masked: `url` alone has user names, passwords and query strings."""

    url: str

    def __str__(self) -> str:
        return _masked_url(self.url)

    def __repr__(self) -> str:
        return f"Location({str(self)!r})"

    @property
    def scheme(self) -> str:
        """`s3`, in lower case."""
        return self.url.partition("://")[0].lower()

    @property
    def rest(self) -> str:
        """Everything after the scheme: bucket and key, or a path; without the query of http."""
        rest = self.url.partition("://")[2]
        return rest.partition("?")[0].partition("#")[0] if self.scheme in _WITH_QUERY else rest

    @property
    def name(self) -> str:
        """The last part: `model.onnx`; empty for a bucket and for a URL that ends with /."""
        return self.rest.rpartition("/")[2] if "/" in self.rest else ""

    @property
    def suffix(self) -> str:
        """`.onnx`; empty if the name has none."""
        return os.path.splitext(self.name)[1]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return os.path.splitext(self.name)[0]

    @property
    def parent(self) -> Location:
        """The folder, so that `where.parent / where.name` is `where`; that of a bucket is the bucket."""
        folder, slash, _ = self.rest.rpartition("/")
        return Location(f"{self.scheme}://{folder if slash else self.rest}")

    def __truediv__(self, inner: str) -> Location:
        """A name, or several with / between them, below this one, which has no / at its end unless a folder has no
        name."""
        return Location(f"{self.scheme}://{self.rest}/{inner}")

    def without_slash(self) -> Location:
        """A prefix as people write it, without the / at its end."""
        return Location(f"{self.scheme}://{self.rest[:-1]}") if self.rest.endswith("/") else self

    def with_suffix(self, suffix: str) -> Location:
        """The same name with another suffix."""
        return self.parent / (self.stem + suffix)

    def relative_to(self, folder: Location) -> str | None:
        """The part after a folder; None if this is not below it."""
        head = f"{folder.scheme}://{folder.rest}/"
        own = f"{self.scheme}://{self.rest}"
        return own[len(head) :] if own.startswith(head) else None


PathOrUrl = Path | Location
"""The location of a file: on this machine, or in a store. Both have `name`, `suffix`, `parent`, `/` and `with_suffix`.
"""


def masked(text: str) -> str:
    """A text in which no URL has user names, passwords or query strings."""
    return _IN_TEXT.sub(lambda match: _masked_url(match[0]), text)


def environment_of(scheme: str) -> str:
    """The source of the credentials of a store, for messages."""
    return _ENVIRONMENTS.get(scheme, "see the documentation of its fsspec package")


_ENVIRONMENTS = {
    **dict.fromkeys(("s3", "s3a"), "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the machine's role"),
    **dict.fromkeys(("gs", "gcs"), "GOOGLE_APPLICATION_CREDENTIALS, or `gcloud auth application-default login`"),
    **dict.fromkeys(
        ("az", "abfs", "abfss", "adl"), "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_CONNECTION_STRING or `az login`"
    ),
}


def _has_password(where: Location) -> bool:
    """Whether there is a password: KEY:SECRET@bucket. A secret may contain a /, a bucket cannot contain a colon."""
    authority, _, rest = where.url.partition("://")[2].partition("/")
    user, at, _ = authority.rpartition("@")
    if at and ":" in user:
        return True
    is_port = where.scheme in _WITH_HOST and _PORT.fullmatch(authority.rpartition("@")[2])
    path = rest.partition("?")[0] if where.scheme in _WITH_QUERY else rest
    return ":" in authority and not is_port and "@" in path


def _masked_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    if _has_password(Location(url)):
        rest = f"***@{rest.rpartition('@')[2]}"
    host, slash, path = rest.partition("/")
    _, at, server = host.rpartition("@")
    if at and scheme not in _WITH_CONTAINER:
        host = f"***@{server}"
    head, mark, query = (host + slash + path).partition("?")
    is_signed = scheme in _WITH_SIGNED_QUERY and "=" in query
    is_secret = is_signed or scheme in _WITH_QUERY or _SIGNATURE.search(query)
    return f"{scheme}://{head}?***" if mark and is_secret else f"{scheme}://{head}{mark}{query}"


Ranges = tuple[tuple[int, int], ...]
"""Pairs of the first byte and the byte after the last one."""


@dataclass(frozen=True, slots=True)
class Info:
    """The facts that a store gives about an object: its size in bytes, and its ETag or checksum; empty if the store has
    none."""

    size: int
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size in bytes and SHA-256 of a file that was read.

    An object at a URL has a tag too, if its store has one. `ranges` are those of external data that was read in part:
    the hash is that of these bytes.
    """

    size: int
    sha256: str
    tag: str = ""
    ranges: Ranges | None = None

    @property
    def info(self) -> Info:
        """Size and tag."""
        return Info(self.size, self.tag)
