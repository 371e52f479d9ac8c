"""What the passes on sequences share: layouts of a sequence, and the walk that replaces sequences by their tensors."""
