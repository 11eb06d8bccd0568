"""Training of sentence vectors: objectives, cached gradients, workload, run."""
