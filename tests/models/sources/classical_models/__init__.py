"""Small estimators whose exports are test material, one file a kind; each file has a catalogue, MODELS."""
