"""Files that attack a converter, by class, and what must become of each."""
