"""Servers that speak a vendor's wire on the loopback and account for its cache by its rules.

They do not depend on Lamina's ledger: the cost of a request follows from the bytes on the wire
alone.

Private: see `lamina` for what is public.
"""
