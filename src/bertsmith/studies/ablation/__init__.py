"""Ablation: one recipe with single settings changed, over the same seeds, corpus and order."""
