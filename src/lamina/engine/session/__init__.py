"""`Session` and `Turn`: preparing, committing and resuming turns, and moving about in the tree.

Private: see `lamina` for what is public.
"""
