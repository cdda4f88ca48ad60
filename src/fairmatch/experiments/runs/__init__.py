"""Runs of the study: their specs, their training, and their records on disk."""
