"""The page of a fine-tuned model, drawn from its record (proof.json) and nothing else."""
