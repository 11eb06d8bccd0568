"""Correction of vectors after the fact: whitening and flow, saved as dense layers."""
