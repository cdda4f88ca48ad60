"""Networks that descend a loss plus a weighted penalty."""
