"""Who is matched with whom."""
