"""Cells written out in the bodies of loops: what they compute, which cells they are, what replaces them."""
