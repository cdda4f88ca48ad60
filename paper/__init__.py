"""The reproduction of the paper, beside the library."""
