"""Options and loading that several commands share."""
