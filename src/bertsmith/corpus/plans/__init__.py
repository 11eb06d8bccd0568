"""Which stretches of a corpus make which pre-training example."""
