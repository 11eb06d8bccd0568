"""Spelling errors as data: pairs of texts, SIGHAN files, planted errors, confusions."""
