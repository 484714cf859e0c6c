"""A pure `encode` and `decode` per vendor: from a prompt to a request, from a reply to blocks."""
