"""REASONS: why an operator is not supported, for the error message and the operator table.

An operator that is neither listed here nor translated is unknown, or is expanded into the function body of its schema.
"""

from __future__ import annotations

from mo_loop.frontend.registry import qualified

_CHARACTERS = "the IR has string tensors, but no operation that reads or makes characters"
_MAPS = "the IR has only tensors, and no maps from keys to values"

REASONS: dict[str, str] = {
    "ImageDecoder": "the IR has no operation that decodes images: pass pixels to the model",
    "RegexFullMatch": _CHARACTERS,
    "StringConcat": _CHARACTERS,
    "StringNormalizer": _CHARACTERS,
    "StringSplit": _CHARACTERS,
    "ai.onnx.ml::CastMap": _MAPS,
    "ai.onnx.ml::CategoryMapper": "the IR has no operation that converts strings to numbers or numbers to strings",
    "ai.onnx.ml::DictVectorizer": _MAPS,
    "ai.onnx.ml::ZipMap": _MAPS + ": cut the model at the input of ZipMap, which has the same numbers (--output)",
    "ai.onnx.preview.training::Gradient": "the IR has no differentiation: export the gradient as a graph",
}
"""Operator, with its domain unless that is the default one -> why it is not translated."""

_OPTIMISED = (
    "ONNX Runtime optimised this file for one machine: export it again with at most the optimisation level "
    "ORT_ENABLE_EXTENDED, or convert the file before optimisation"
)
DOMAINS: dict[str, str] = {"com.microsoft.nchwc": _OPTIMISED, "com.ms.internal.nhwc": _OPTIMISED}
"""Domain -> why none of its operators is translated."""


def reason(domain: str, op: str) -> str:
    """Why the operator is not translated; empty for an unknown operator."""
    return REASONS.get(qualified(domain, op), DOMAINS.get(domain, ""))


def when(op: str, opset: int) -> str:
    """A text that names the first opset with this operator of the default domain, if the model's opset is older."""
    import onnx

    schemas = onnx.defs.get_all_schemas_with_history()
    versions = [each.since_version for each in schemas if each.name == op and not each.domain]
    return f"ONNX has {op} from opset {min(versions)} on" if versions and opset < min(versions) else ""
