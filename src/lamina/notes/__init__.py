"""Markdown notes: what they hold besides their text, their names, and what is asked of them."""
