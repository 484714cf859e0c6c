"""A session's conversation as people read it: rows of the active path, by index."""
