"""The fast encoder: budgeted batches, one stream a core, the best engine of this machine."""
