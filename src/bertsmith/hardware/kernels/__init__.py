"""What the C++ kernels share: instruction sets, vectors by width, and how they are compiled."""
