"""Lists the external data files of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from mo_loop.errors import FileError
from mo_loop.frontend.model import opened
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.frontend.tensor_protos import contained

_EXTERNAL = 1  # TensorProto.EXTERNAL


def external_files(path: str) -> list[str]:
    """Real paths of the external data of the model at `path`, each once, sorted.

    Files that are missing or lie outside the model's folder are left out: what a conversion says of them is said there.

    Raises:
        FileError: the model cannot be read, or is none.
    """
    model = opened(path)
    found = set()
    for location, tensor in _locations(model.proto):
        try:
            real = contained(tensor, location, model.folder)
        except FileError:
            continue
        if os.path.isfile(real):
            found.add(real)
    return sorted(found)


def _locations(proto: Any) -> Iterator[tuple[str, Any]]:
    """Each location with one of the tensors that name it; of a large file, its own data is not among them."""
    seen = {OWN_FILE}
    for tensor in _tensors(proto):
        if tensor.data_location != _EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        if location not in seen:
            seen.add(location)
            yield location, tensor


def _tensors(proto: Any) -> Iterator[Any]:
    """Initializers and attributes, those of bodies and functions included."""
    pending: list[Any] = [proto.graph, *proto.functions]
    while pending:
        scope = pending.pop()
        if hasattr(scope, "initializer"):
            yield from scope.initializer
            yield from _dense(scope.sparse_initializer)
        attributes = [attribute for node in scope.node for attribute in node.attribute]
        for attribute in [*attributes, *getattr(scope, "attribute_proto", ())]:
            yield from (attribute.t, *attribute.tensors)
            yield from _dense((attribute.sparse_tensor, *attribute.sparse_tensors))
            pending += [attribute.g] if attribute.HasField("g") else attribute.graphs


def _dense(sparse: Any) -> Iterator[Any]:
    for each in sparse:
        yield each.values
        yield each.indices
