"""Boosted trees that descend the same objective."""
