"""A bf16 encoder in C++ with float32 sums: compiled once a machine, probed before it is trusted."""
