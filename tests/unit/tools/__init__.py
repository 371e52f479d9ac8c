"""The programs of tools/ that measure, compare and plant faults."""
