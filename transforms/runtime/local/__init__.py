"""Rules for one node and its neighbours, by kind of operation. `local_rules.py` runs them."""
