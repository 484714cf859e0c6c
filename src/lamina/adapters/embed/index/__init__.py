"""The search index: chunks by the digest of their text, with their terms and vectors."""
