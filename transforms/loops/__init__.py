"""Loops at the speed of vectors: only operations that depend on the step before stay in a loop."""
