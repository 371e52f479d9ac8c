"""Loops at the speed of vectors: only what depends on the step before stays in a loop."""
