"""Why nothing translates an operator: the sentences of the error and of the operator table.

An operator that is neither here nor translated is expanded into the body that its schema gives it, or unknown.
"""

from __future__ import annotations

from mo_loop.frontend.registry import qualified

_CHARACTERS = "the IR passes strings through, and has no operation that reads or makes their characters"
_MAPS = "the IR has tensors alone, and no maps from one kind of key to values"

REASONS: dict[str, str] = {
    "ImageDecoder": "the IR has no operation that decodes images: the model has to begin with the pixels",
    "RegexFullMatch": _CHARACTERS,
    "StringConcat": _CHARACTERS,
    "StringNormalizer": _CHARACTERS,
    "StringSplit": _CHARACTERS,
    "ai.onnx.ml::CastMap": _MAPS,
    "ai.onnx.ml::CategoryMapper": "it turns strings into numbers or numbers into strings, which no operation of the IR "
    "does",
    "ai.onnx.ml::DictVectorizer": _MAPS,
    "ai.onnx.ml::ZipMap": _MAPS + ": end the model at its input, which holds the same numbers",
    "ai.onnx.preview.training::Gradient": "the IR computes and does not differentiate: export the gradient as a graph",
}
"""Operator, with its domain unless that is the default one -> why no IR can express it, or this program does not."""


def reason(domain: str, op: str) -> str:
    """Why nothing translates the operator; empty where nothing is known about it."""
    return REASONS.get(qualified(domain, op), "")


def when(op: str, opset: int) -> str:
    """From which opset on ONNX has an operator of the default domain, if the model's is older; else empty."""
    import onnx

    schemas = onnx.defs.get_all_schemas_with_history()
    versions = [each.since_version for each in schemas if each.name == op and not each.domain]
    return f"ONNX has {op} from opset {min(versions)} on" if versions and opset < min(versions) else ""
