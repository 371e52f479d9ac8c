"""Decoders with caches that run step by step: with the caches as inputs and outputs, and as states."""
