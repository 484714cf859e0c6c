"""The search index: stores chunks' terms and vectors by text digest."""
