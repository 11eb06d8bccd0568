"""Several small runs that answer one question: lengths, vectors, benchmarks."""
