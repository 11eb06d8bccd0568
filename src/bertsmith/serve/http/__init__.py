"""HTTP: what a connection may send, how long it may take, and who may call."""
