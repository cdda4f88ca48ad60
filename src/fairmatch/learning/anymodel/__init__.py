"""Fairness around models that somebody already has."""
