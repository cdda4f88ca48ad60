"""Audits of any model's scores, as trees of facts."""
