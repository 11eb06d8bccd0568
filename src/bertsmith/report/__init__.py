"""Self-contained HTML pages: no scripts, nothing fetched, everything from data escaped."""
