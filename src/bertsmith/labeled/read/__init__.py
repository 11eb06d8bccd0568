"""From a file to examples: every row accepted or rejected, none lost."""
