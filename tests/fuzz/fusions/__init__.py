"""Chains of operators that the CPU plugin fuses: a producer, and what follows it with constants."""
