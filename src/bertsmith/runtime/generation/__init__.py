"""Writing text token by token: writers with a cache, and what chooses the next token."""
