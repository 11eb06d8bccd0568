"""Training to write a text for a text: targets for sources, similar sentences (SimBERT)."""
