"""The service: models behind HTTP, one process per model, and the page to try them."""
