"""Passes that choose the form of quantised tensors."""
