"""The front end: names, types, scopes and weights of converted models."""
