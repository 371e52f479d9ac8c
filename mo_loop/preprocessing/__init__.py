"""Preprocessing that a conversion builds into the model: layouts, batch, channels, mean and scale."""
