"""Kinds of training: what each reads, learns, saves and proves; the frame is `training.kind`."""
