"""The fairness weights of whole curves, by method; plain numbers, so that no learner is loaded."""

# The weights of the paper's Appendix D.2.
PAPER_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10)

# They reach the paper's levels on its four tables.
LAFTR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SIPM_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 4.0)

# A classifier undoes a partial repair as long as it can tell the groups apart, so that most of the
# way happens at the end.
REPAIR_AMOUNTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0)
