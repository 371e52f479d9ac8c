"""What an input goes through before the model, built into the model."""
