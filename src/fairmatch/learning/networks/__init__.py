"""Networks that minimise a loss plus a weighted penalty."""
