"""The arguments of callers, checked and made numeric."""
