"""One turn in order. Knows ports only: no files, no network, no vendor."""
