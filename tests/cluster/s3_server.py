"""A real S3 server (moto's) on the loopback, which counts requests and can fail some of them.

    with S3Server() as server:
        store = server.bucket()
        store.put("model.onnx", data)
        server.fail_every(10)              # each tenth request is answered with 503 SlowDown
        store.requests("GET")              # the requests to this bucket since it was made
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

SLOW_DOWN = b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>'
DENIED = b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>'
KEY, SECRET = "testing-key", "testing-secret"


class Request(NamedTuple):
    """One request: its method, path, and the range that it asks for."""

    method: str
    path: str
    range: str


class S3Server:
    """The server, in a thread of this process."""

    def __enter__(self) -> S3Server:
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Silent(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log(self, *_: Any) -> None:
                """Prints nothing."""

        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=Silent)
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._count = 0
        self.heard: list[Request] = []
        self.mend()
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a client finds the server."""
        return {
            "AWS_ENDPOINT_URL": self.url, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        }

    def bucket(self) -> Store:
        """A new bucket."""
        import boto3

        client = boto3.client(
            "s3", endpoint_url=self.url, aws_access_key_id=KEY, aws_secret_access_key=SECRET, region_name="us-east-1"
        )
        name = f"bucket-{next(self._numbers)}"
        client.create_bucket(Bucket=name)
        return Store(self, client, name)

    def fail_every(self, count: int) -> None:
        """Answer each `count`th request with 503."""
        self._every = count

    def fail_when(self, fails: Callable[[Request], bool], answer: bytes = SLOW_DOWN, status: str = "503 Slow") -> None:
        """Answer these requests with an error."""
        self._fails, self._failure = fails, (status, answer)

    def before(self, call: Callable[[Request], None]) -> None:
        """Call this before each request is answered."""
        self._before = call

    def mend(self) -> None:
        """Answer all requests again."""
        self._every = 0
        self._fails: Callable[[Request], bool] = lambda _: False
        self._failure = ("503 Slow", SLOW_DOWN)
        self._before: Callable[[Request], None] = lambda _: None

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        query = f"?{environ['QUERY_STRING']}" if environ.get("QUERY_STRING") else ""
        request = Request(environ["REQUEST_METHOD"], environ["PATH_INFO"] + query, environ.get("HTTP_RANGE", ""))
        is_ours = "boto3" not in environ.get("HTTP_USER_AGENT", "").lower()
        with self._lock:
            self._count += is_ours
            is_late = is_ours and self._every and self._count % self._every == 0
            if is_ours:
                self.heard.append(request)
        if is_ours:
            self._before(request)
        if is_late or (is_ours and self._fails(request)):
            status, content = self._failure
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(content)))])
            return [b"" if request.method == "HEAD" else content]
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


class Store:
    """One bucket, seen from outside: by boto3, whose requests do not count."""

    def __init__(self, server: S3Server, client: Any, name: str) -> None:
        self.server = server
        self.name = name
        self.client = client
        self.url = f"s3://{name}"
        self._start = len(server.heard)

    def put(self, key: str, content: bytes | Path) -> None:
        """Put an object."""
        data = content.read_bytes() if isinstance(content, Path) else content
        self.client.put_object(Bucket=self.name, Key=key, Body=data)

    def put_many(self, keys: Iterable[str]) -> None:
        """Put small objects, in the server itself: no request for each."""
        from moto.core import DEFAULT_ACCOUNT_ID
        from moto.s3.models import s3_backends

        for key in keys:
            s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object(self.name, key, b"x")

    def read(self, key: str) -> bytes:
        """The content of an object."""
        data: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return data

    def delete(self, key: str) -> None:
        """Remove an object."""
        self.client.delete_object(Bucket=self.name, Key=key)

    def names(self, *, hidden: bool = False) -> list[str]:
        """The names of all objects; `hidden` are those of the state."""
        return sorted(key for key in self.tags() if hidden or ".mo-loop/" not in key)

    def tags(self) -> dict[str, str]:
        """The tag of each object: of one that was not put in parts, the MD5 of its content, in quotes."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", [])}

    def uploads(self) -> list[str]:
        """The names of uploads in parts that have not ended."""
        return [each["Key"] for each in self.client.list_multipart_uploads(Bucket=self.name).get("Uploads", [])]

    def requests(self, method: str = "", part: str = "") -> list[Request]:
        """The requests of the program to this bucket since it was made or `forget` was called."""
        heard = self.server.heard[self._start :]
        mine = [each for each in heard if each.path.startswith((f"/{self.name}/", f"/{self.name}?"))]
        return [each for each in mine if each.method.startswith(method) and part in each.path]

    def forget(self) -> None:
        """Count from here on."""
        self._start = len(self.server.heard)
