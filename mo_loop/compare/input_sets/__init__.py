"""The sets of inputs of a comparison: given, or generated until both sides accept them."""
