"""What the records say: levels, answers and claims."""
