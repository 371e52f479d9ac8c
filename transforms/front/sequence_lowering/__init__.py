"""The lowering of sequences: how tensors hold a sequence, and the traversal that replaces sequences by tensors."""
