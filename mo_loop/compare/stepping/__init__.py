"""Stateful models, compared step by step."""
