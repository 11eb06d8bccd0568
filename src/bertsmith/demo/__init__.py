"""A first look at bertsmith on text that every Python brings along."""
