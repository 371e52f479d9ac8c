"""Operators of ONNX Runtime that have neither a translator nor a reason why not."""

_DEFAULT_DOMAIN = ""
_MICROSOFT = ""
PENDING = {*_DEFAULT_DOMAIN.split(), *(f"com.microsoft::{name}" for name in _MICROSOFT.split())}
