"""Models that treat matched people alike."""
