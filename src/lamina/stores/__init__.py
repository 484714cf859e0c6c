"""Where journals are kept."""
