"""The file systems of fsspec. This module alone imports fsspec, when the first URL is used."""

from __future__ import annotations

from typing import Any

from mo_loop.batching.storage.faults import LOCAL, coded
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import MoLoopError, StorageError

_PACKAGES = {
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("az", "abfs", "abfss", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    "oci": "ocifs", "oss": "ossfs", "hdfs": "pyarrow", "smb": "smbprotocol", "dropbox": "dropboxdrivefs",
    "webdav": "webdav4", "hf": "huggingface_hub",
}  # fmt: skip

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
    )  # fmt: skip
