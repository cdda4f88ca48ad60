"""A study of one's own: a table or a method from a file."""
