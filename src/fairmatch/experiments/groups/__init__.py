"""Several groups and other criteria: our learners beside the usual alternatives."""
