"""Commands that put models to work behind HTTP."""
