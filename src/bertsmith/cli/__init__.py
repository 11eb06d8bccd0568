"""The command line: one small app and one file a command."""
