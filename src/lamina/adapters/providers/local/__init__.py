"""Models that run on this machine: lookup, download, execution and token counts."""
