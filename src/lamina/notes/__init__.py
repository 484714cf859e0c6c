"""Markdown notes: what they hold besides their text, how they are named, and what is asked of them."""
