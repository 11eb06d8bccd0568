"""Layouts of model folders: of transformers, of pickles, and of your own."""
