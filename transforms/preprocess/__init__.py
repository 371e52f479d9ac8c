"""Passes that build the preprocessing of inputs into the model."""
