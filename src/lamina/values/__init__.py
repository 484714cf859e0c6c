"""Frozen records, one noun per module. They know nothing of files, clocks or providers."""
