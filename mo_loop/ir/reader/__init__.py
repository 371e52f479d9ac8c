"""The IR reader: model.xml and model.bin to records, and from those to a Graph."""

from mo_loop.ir.reader.parse import read, read_with_ids

__all__ = ["read", "read_with_ids"]
