"""Other libraries on the same splits: what each reaches at a gap, how long it takes."""
