"""The one search index: chunks by the digest of their text, their terms and their vectors."""
