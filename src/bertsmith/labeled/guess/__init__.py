"""From a file to the spec that reads it: each guess with its reason."""
