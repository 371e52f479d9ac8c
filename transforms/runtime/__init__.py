"""Passes that avoid what the runtime computes wrongly."""
