"""Runs that belong together: trials that finish once each, seeds and folds."""
