"""Faster loops: only operations that depend on the step before stay in a loop."""
