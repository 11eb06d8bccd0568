"""Where and how a run computes: device, precision, processes."""
