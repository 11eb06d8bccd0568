"""An encoder, a text vector and a head: the model that a task trains."""
