"""The parts of tools/mutants.py: drawing mutants, finding the tests that reach them, running those."""
