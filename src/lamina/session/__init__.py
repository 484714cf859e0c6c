"""`Session` and `Turn`: preparing, committing and resuming turns, and moving about in the tree."""
