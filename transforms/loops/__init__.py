"""Loops at the speed of vectors: what is left of a loop is what depends on the step before."""
