"""Implements `Session` and `Turn`: preparing, committing and resuming turns, and navigating the
tree.

Private: see `lamina` for what is public.
"""
