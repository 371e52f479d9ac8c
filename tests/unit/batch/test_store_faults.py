"""Errors of stores: which pass, which are tried again, and their messages. No store is needed."""

import errno

import pytest

from mo_loop.batching.storage import filesystems
from mo_loop.batching.storage.filesystems import Fault, called, coded, fault_of
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import StorageError

WHERE = Location("s3://zoo/m.onnx")


class ClientError(Exception):
    """As botocore raises it."""

    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}


class NoCredentialsError(Exception):
    """The same."""


class HttpError(Exception):
    """As gcsfs raises it."""

    def __init__(self, code: int) -> None:
        self.code = code


def translated(error: OSError, cause: Exception) -> OSError:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(("error", "fault"), [
    (FileNotFoundError("x"), Fault.MISSING), (ClientError("NoSuchBucket", 404), Fault.MISSING),
    (HttpError(404), Fault.MISSING), (PermissionError("x"), Fault.REFUSED),
    (NoCredentialsError(), Fault.REFUSED), (ClientError("ExpiredToken"), Fault.REFUSED),
    (HttpError(401), Fault.REFUSED), (ClientError("SlowDown", 503), Fault.BUSY), (HttpError(429), Fault.BUSY),
    (translated(OSError(errno.EBUSY, "Slow"), ClientError("SlowDown", 503)), Fault.BUSY),
    (translated(OSError(errno.EIO, "x"), ClientError("Other", 502)), Fault.BUSY),
    (ConnectionResetError(), Fault.UNREACHABLE), (TimeoutError(), Fault.UNREACHABLE),
    (OSError(errno.EHOSTUNREACH, "x"), Fault.UNREACHABLE), (OSError(errno.ENOSPC, "x"), Fault.OTHER),
    (ValueError("x"), Fault.OTHER),
])
def test_kinds(error: Exception, fault: Fault) -> None:
    assert fault_of(error) is fault


@pytest.mark.parametrize(("error", "code"), [
    (FileNotFoundError(), "ML282"), (PermissionError(), "ML281"), (ConnectionResetError(), "ML283"),
    (HttpError(503), "ML284"), (ValueError(), "ML286"),
])
def test_codes(error: Exception, code: str) -> None:
    found = coded(WHERE, "read", error)
    assert found.code == code and "s3://zoo/m.onnx" in found.message and found.hint and found.exit_code == 2


def test_permissions_of_local_files_are_no_credentials() -> None:
    assert "credentials" not in str(coded(Location("file:///a/b"), "read", PermissionError("Permission denied")))


def test_what_a_library_says_is_masked() -> None:
    error = ValueError("GET https://host/m.onnx?Signature=abc: s3://KEY:SECRET@zoo")
    assert not {"abc", "SECRET"} & set(str(coded(WHERE, "read", error)).replace("=", " ").replace(":", " ").split())


class TestAttempts:
    @pytest.fixture(autouse=True)
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        found: list[float] = []
        monkeypatch.setattr(filesystems.time, "sleep", found.append)
        return found

    def failing(self, *errors: Exception) -> object:
        pending = list(errors)

        def call() -> str:
            if pending:
                raise pending.pop(0)
            return "done"

        return call

    def test_a_fault_that_passes(self, waits: list[float]) -> None:
        call = self.failing(TimeoutError(), HttpError(503), ConnectionResetError())
        assert called(Location("gs://zoo/m"), "read", call) == "done"  # type: ignore[arg-type]
        assert len(waits) == 3 and waits[0] <= 0.25 and 0.5 <= waits[2] <= 1.0

    def test_one_that_does_not(self, waits: list[float]) -> None:
        with pytest.raises(StorageError) as caught:
            called(WHERE, "read", self.failing(PermissionError()))  # type: ignore[arg-type]
        assert caught.value.code == "ML281" and waits == []

    def test_the_end(self, waits: list[float]) -> None:
        with pytest.raises(StorageError) as caught:
            called(Location("gs://zoo/m"), "read", self.failing(*[HttpError(503)] * 5))  # type: ignore[arg-type]
        assert caught.value.code == "ML284" and len(waits) == 4

    def test_packages_that_try_again_themselves(self, waits: list[float]) -> None:
        with pytest.raises(StorageError):
            called(WHERE, "read", self.failing(*[HttpError(503)] * 2))  # type: ignore[arg-type]
        assert len(waits) == 1
