"""What a conversion did: times and counts, what a model holds, where each tensor went."""
