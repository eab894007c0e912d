"""What a file, a folder or a name is, what is in it and what is wrong with it."""
