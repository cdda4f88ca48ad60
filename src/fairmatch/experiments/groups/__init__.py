"""Several groups and other criteria: our learners beside what a user would pick instead."""
