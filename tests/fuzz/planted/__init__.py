"""Faults that are planted in converted models, and whether `mo_loop.compare.layers` and `verify` find them."""
