"""Operators that generate text: they hold decoders, and become loops."""
