"""Exported ONNX models: strip what depends on the machine, check the rest."""

from collections.abc import Collection, Iterator

import onnx
from google.protobuf.message import Message


def messages(message: Message) -> Iterator[Message]:
    """A protobuf message and all messages inside it: graphs, sub-graphs, functions, nodes, types."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for child in (value,) if isinstance(value, Message) else value:
            yield from messages(child)


def strip(proto: onnx.ModelProto) -> None:
    """Remove what depends on the machine: the build of the exporter, and doc strings and metadata at every depth."""
    proto.producer_version = proto.producer_version.partition("+")[0]
    for message in messages(proto):
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)


def check(proto: onnx.ModelProto, sequences: bool | None = False, domains: Collection[str] = ()) -> None:
    """Raise ValueError unless the model is self-contained, plain ONNX with tensors as inputs and outputs.

    sequences: whether it must contain operators on sequences; None if it may.
    domains: those of other operators that it may contain; its outputs may be maps then.
    """
    onnx.checker.check_model(proto, full_check=not domains)
    for port in (*proto.graph.input, *(() if domains else proto.graph.output)):
        if not port.type.HasField("tensor_type"):
            raise ValueError(f"{port.name} is no tensor")
    found = False
    for message in messages(proto):
        if isinstance(message, onnx.NodeProto) and message.domain not in ("", *domains):
            raise ValueError(f"operator {message.domain}::{message.op_type}")
        if isinstance(message, onnx.TensorProto) and message.external_data:
            raise ValueError(f"external data of {message.name}")
        found |= isinstance(message, onnx.NodeProto) and "Sequence" in message.op_type
    if sequences is not None and found is not sequences:
        raise ValueError("operators on sequences" if found else "no operator on sequences")
