"""Handles Markdown notes: their metadata, their names, and queries over them.

Private: see `lamina` for what is public.
"""
