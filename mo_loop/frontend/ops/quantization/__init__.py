"""Quantised tensors, packed weights, and the operators on them."""
