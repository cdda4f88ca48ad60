"""Specs of runs to records on disk."""
