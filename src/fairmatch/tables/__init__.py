"""What callers give, checked and made numeric."""
