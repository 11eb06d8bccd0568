"""Keys and values of texts under way: sources once per text, written rows in slots."""
