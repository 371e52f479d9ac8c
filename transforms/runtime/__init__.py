"""Passes that avoid errors of the runtime."""
