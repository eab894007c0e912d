"""The tables and figures of the five papers as named plans, made here beside what is printed."""
