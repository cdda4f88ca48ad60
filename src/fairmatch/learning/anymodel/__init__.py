"""Fairness around any model that a user already has."""
