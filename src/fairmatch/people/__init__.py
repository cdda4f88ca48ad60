"""People, parsed once: what callers give, checked and made numeric."""
