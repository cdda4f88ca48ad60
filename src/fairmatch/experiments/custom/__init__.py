"""A researcher's own study: tables and methods described in a file."""
