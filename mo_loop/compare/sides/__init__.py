"""One side of a comparison: an IR, run on all sets of inputs and judged against the oracle."""
