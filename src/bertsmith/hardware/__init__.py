"""What this machine can really do: probes in child processes, their report, and the choice."""
