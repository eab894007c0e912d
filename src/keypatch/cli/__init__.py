"""The command line: one file per command, each reads arguments, calls one function and prints."""
