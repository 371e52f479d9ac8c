"""The parts of `mo-loop batch` that need no process."""
