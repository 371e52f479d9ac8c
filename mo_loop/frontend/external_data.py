"""Lists the external data files of a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from mo_loop.errors import FileError
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.onnx_graphs import all_graphs
from mo_loop.frontend.onnx_tensors import tensor_protos
from mo_loop.frontend.strip_weights import OWN_FILE
from mo_loop.frontend.tensor_protos import contained

_EXTERNAL = 1  # TensorProto.EXTERNAL


def external_files(path: str) -> list[str]:
    """Real paths of the external data of the model at `path`, each once, sorted.

    Files that are missing or lie outside the model's folder are left out: the conversion reports them.

    Raises:
        FileError: the file cannot be read, or is not an ONNX model.
    """
    model = opened(path)
    found = set()
    for location, tensor in _locations(model):
        try:
            real = contained(tensor, location, model.folder)
        except FileError:
            continue
        if os.path.isfile(real):
            found.add(real)
    return sorted(found)


def _locations(model: OnnxModel) -> Iterator[tuple[str, Any]]:
    """Each location, with one of the tensors that name it. The data inside the model's own file has no entry."""
    seen = {OWN_FILE}
    for tensor in (tensor for graph in all_graphs(model) for tensor in tensor_protos(graph)):
        if tensor.data_location != _EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        if location not in seen:
            seen.add(location)
            yield location, tensor
