"""Knowledge of entities in pre-training: mentions, replaced mentions (WKLM), entity alignment."""
