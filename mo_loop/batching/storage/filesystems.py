"""The file systems of fsspec, and the errors of stores: which pass by themselves, how they are tried again, and the
coded error of each.

    fs, path = filesystem_of(where)
    data = called(where, "read", lambda: fs.cat_file(path))

This module alone imports fsspec, when the first URL is used. Each package raises errors of its own. They are
distinguished by types of Python, by the HTTP status that they carry, and by their class names, so that no package has
to be imported."""

import errno
import random
import time
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, TypeVar

from mo_loop.batching.storage.locations import Location, environment_of, masked
from mo_loop.errors import MoLoopError, StorageError

T = TypeVar("T")

ATTEMPTS = 5
"""The number of attempts of a call whose faults are transient."""

ATTEMPTS_OF = {"s3": 2, "s3a": 2}
"""The same for stores whose package tries again by itself (`mo_loop.batching.storage.filesystems`)."""

FIRST_WAIT = 0.25
"""Seconds before the second attempt, doubled each time; a random part of them keeps many workers apart."""

LOCAL = ("file", "local")


class Fault(Enum):
    """The kinds of errors."""

    MISSING = "missing"
    REFUSED = "refused"
    BUSY = "busy"
    UNREACHABLE = "unreachable"
    OTHER = "other"


PASSING = (Fault.BUSY, Fault.UNREACHABLE)

_STATUSES = {
    **dict.fromkeys((404, 410), Fault.MISSING),
    **dict.fromkeys((401, 403, 407), Fault.REFUSED),
    **dict.fromkeys((408, 425, 429, 500, 502, 503, 504), Fault.BUSY),
}
_CODES = {
    Fault.MISSING: "NoSuchBucket NoSuchKey ContainerNotFound BlobNotFound",
    Fault.REFUSED: "ExpiredToken InvalidToken InvalidAccessKeyId SignatureDoesNotMatch AccessDenied "
    "AuthorizationHeaderMalformed AuthFailure InvalidClientTokenId",
    Fault.BUSY: "SlowDown Throttling ThrottlingException RequestLimitExceeded RequestTimeout InternalError "
    "ServiceUnavailable TooManyRequests",
}
_CLASSES = {
    Fault.MISSING: "ResourceNotFoundError NoSuchBucket",
    Fault.REFUSED: "NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound "
    "TokenRetrievalError SSOTokenLoadError UnauthorizedSSOTokenError DefaultCredentialsError RefreshError "
    "ClientAuthenticationError CredentialUnavailableError",
    Fault.UNREACHABLE: "EndpointConnectionError ConnectTimeoutError ReadTimeoutError ConnectionClosedError "
    "HTTPClientError ClientConnectorError ClientConnectionError ServerDisconnectedError ClientPayloadError "
    "IncompleteRead IncompleteReadError ResponseParserError FSTimeoutError ServiceRequestError ServiceResponseError "
    "gaierror ResponseStreamingError TransportError",
}
_NUMBERS = {
    **dict.fromkeys((errno.ECONNRESET, errno.EPIPE, errno.ETIMEDOUT, errno.ECONNREFUSED, errno.EHOSTUNREACH,
                     errno.ENETUNREACH), Fault.UNREACHABLE),
    errno.EBUSY: Fault.BUSY,
}


def fault_of(error: BaseException) -> Fault:
    """The kind of an error, from the error itself, then from its causes."""
    faults = [_own_fault(each) for each in _chain(error)]
    return next((each for each in faults if each is not Fault.OTHER), Fault.OTHER)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)


def _own_fault(error: BaseException) -> Fault:
    code, status = _response_of(error)
    if found := _named(_CODES, code) or _STATUSES.get(status):
        return found
    for each in type(error).__mro__:
        if found := _named(_CLASSES, each.__name__):
            return found
    if isinstance(error, FileNotFoundError):
        return Fault.MISSING
    if isinstance(error, PermissionError):
        return Fault.REFUSED
    if isinstance(error, ConnectionError | TimeoutError):
        return Fault.UNREACHABLE
    return _NUMBERS.get(getattr(error, "errno", None) or 0, Fault.OTHER)


def _named(names: Mapping[Fault, str], name: str) -> Fault | None:
    return next((fault for fault, known in names.items() if name in known.split()), None)


def _response_of(error: BaseException) -> tuple[str, int]:
    """The code and the HTTP status that an error carries."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return str(response.get("Error", {}).get("Code", "")), status if isinstance(status, int) else 0
    for name in ("status", "status_code", "code"):
        status = getattr(error, name, None)
        if isinstance(status, int):
            return "", status
    return str(getattr(error, "error_code", "") or ""), 0


def called(where: Location, what: str, call: Callable[[], T]) -> T:
    """Return the result of `call`. A transient fault is retried with exponential backoff.

    `what` is the operation on the object: "read", "written", "listed", "removed".

    Raises:
        StorageError: the call failed in the end.
    """
    left, wait = ATTEMPTS_OF.get(where.scheme, ATTEMPTS), FIRST_WAIT
    while True:
        try:
            return call()
        except MoLoopError:
            raise
        except Exception as error:
            fault = fault_of(error)
            if fault not in PASSING or left == 1:
                raise coded(where, what, error, fault) from error
        time.sleep(wait * random.uniform(0.5, 1.0))
        left, wait = left - 1, 2 * wait


def coded(where: Location, what: str, error: BaseException, fault: Fault | None = None) -> StorageError:
    """The error of mo_loop for an error of a store."""
    fault = fault or fault_of(error)
    why = _said(error)
    if fault is Fault.MISSING:
        return StorageError(f"{where} does not exist", why=why, hint="check the bucket and the name", code="ML282")
    if fault is Fault.REFUSED and where.scheme not in LOCAL:
        return StorageError(
            f"the store refuses access: {where} cannot be {what}", why=why, code="ML281",
            hint="check the credentials that the store takes from its own environment, never from the command line: "
            f"{environment_of(where.scheme)}",
        )
    if fault is Fault.UNREACHABLE:
        return StorageError(
            f"the store of {where} cannot be reached", why=why, code="ML283",
            hint="check the network, and the address of the store in its environment; then run the same command again",
        )
    if fault is Fault.BUSY:
        return StorageError(
            f"the store is too busy: {where} cannot be {what}", why=f"it refused every attempt: {why}", code="ML284",
            hint="run the same command again later, or with fewer workers (--jobs)",
        )
    return StorageError(f"{where} cannot be {what}", why=why, hint="check the URL", code="ML286")


def _said(error: BaseException) -> str:
    """The text of an error, in one line and without credentials."""
    text = " ".join(masked(str(error)).split())
    name = type(error).__name__
    return f"{name}: {text}"[:300] if text else name


_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "oci": "ocifs", "oss": "ossfs", "hdfs": "pyarrow", "smb": "smbprotocol", "dropbox": "dropboxdrivefs",
    "webdav": "webdav4", "hf": "huggingface_hub",
}

# botocore waits between its attempts, longer each time; four parts of a file at a time bound the memory.
_S3 = {
    "config_kwargs": {"retries": {"mode": "standard", "total_max_attempts": 4}, "max_pool_connections": 32},
    "max_concurrency": 4,
}
_OPTIONS: dict[str, dict[str, Any]] = {"s3": _S3, "s3a": _S3, **{each: {"auto_mkdir": True} for each in LOCAL}}


def filesystem_of(where: Location) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. fsspec returns the same object for the same store.

    Raises:
        StorageError: fsspec, or the package for the scheme, is not installed; or the store cannot be opened.
    """
    try:
        import fsspec
        from fsspec.config import conf
    except ImportError:
        raise _not_installed(where, "fsspec") from None
    scheme = where.scheme
    try:
        # Listings are not kept: what another process writes has to be seen.
        options = {**_OPTIONS.get(scheme, {}), "use_listings_cache": False}
        options = {key: value for key, value in options.items() if key not in conf.get(scheme, {})}
        kind = fsspec.get_filesystem_class(scheme)
        system = kind(**{**kind._get_kwargs_from_urls(where.url), **options})
        # url_to_fs would take a key with :: in it for a chain of URLs.
        path = system._strip_protocol(where.url if where.rest else f"{where.url}/")
        if scheme in ("s3", "s3a"):
            system.retries = 1  # botocore tries again, and so does `called`: a third layer would multiply the attempts
    except ImportError:
        raise _not_installed(where, _PACKAGES.get(scheme, "")) from None
    except ValueError as error:
        if "Protocol not known" in str(error):
            raise StorageError(
                f"{where}: fsspec does not support the scheme {scheme!r}", code="ML280", hint="write, for example, s3://bucket/name"
            ) from None
        raise coded(where, "opened", error) from None
    except MoLoopError:
        raise
    except Exception as error:
        raise coded(where, "opened", error) from error
    return system, path


def local_path(where: Location) -> str | None:
    """The path of a URL that is one of this machine; None for the URL of a store."""
    return filesystem_of(where)[1] if where.scheme in LOCAL else None


def matcher(pattern: str) -> str:
    """The regular expression of a glob: `*` stays in a folder, `**` does not."""
    from fsspec.utils import glob_translate

    translated: str = glob_translate(pattern)
    return translated


def _not_installed(where: Location, package: str) -> StorageError:
    name = package or f"the fsspec package for {where.scheme}"
    more = f" {package}" if package and package != "fsspec" else ""
    return StorageError(
        f"{where} needs the package {name}, which is not installed" if package else f"{where} needs {name}",
        code="ML280", hint=f"pip install fsspec{more}",
    )
