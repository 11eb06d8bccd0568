"""Continual multi-task pre-training (ERNIE 2.0): tasks that begin one after another."""
