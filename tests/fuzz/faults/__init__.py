"""Models of every kind with a planted fault, for the verdict of `verify`: tools/fuzz_verify.py plants many."""
