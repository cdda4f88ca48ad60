"""Fair representations, and a classifier on them."""
