"""The front end: what a conversion makes of names, types, scopes and weights."""
