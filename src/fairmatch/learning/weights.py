"""The fairness weights of whole curves, by method; this module loads no learner."""

# The weights of the paper's Appendix D.2.
PAPER_WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10)

# Among the larger weights, trees with the marginal map pass from deciding to accepting nobody or
# everybody. On each of the four tables and on ACSIncome, one of these weights has a model that
# decides with a gap of .02, with that map and with the default one.
BOOSTING_CHOICES = (
    *(0.0, *PAPER_WEIGHTS[:14]),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 5.5, 6.0, 7.0, 10.0, 20.0, 50.0),
)

# These weights reach the paper's levels on its four tables.
LAFTR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SIPM_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 1.0, 2.0, 4.0)

# A classifier undoes a partial repair as long as it can tell the groups apart. So most of the
# change happens near amount 1, and most amounts lie there.
REPAIR_AMOUNTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 1.0)

# The weights of the paper's rivals, from its Appendix D.2.
REDUCTION_WEIGHTS = (
    *(0.5, 1, 2, 3, 4, 5, 6, 8, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 300, 500),
)
REG_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 1.8, 2, 3, 5, 10, 20, 50, 100),
)
ADV_WEIGHTS = (
    *(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 15, 20),
    *(30, 50, 100),
)
# Bounds of exponentiated gradient, the loosest first.
REDUCTION_BOUNDS = (0.08, 0.05, 0.03, 0.02, 0.01)

# Strengths of quantile alignment: shares of the way to the common distribution.
ALIGNMENT_STRENGTHS = (
    *(0.0, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0),
)
# Weights of match smoothing, whose penalty is a squared difference.
SMOOTHING_WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 200)
# Weights of regressors. The squared loss of a target in standard deviations yields to small ones.
REGRESSION_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
