"""Markdown notes: their metadata, their names, and queries over them."""
