"""Findings, differences, dumps and pages of models."""
