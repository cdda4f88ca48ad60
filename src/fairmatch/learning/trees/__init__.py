"""Boosted trees that minimise a loss plus a weighted penalty."""
