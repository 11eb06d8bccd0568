"""Models that learn to write a text for a text: rows, encoding, workload, similar sentences."""
