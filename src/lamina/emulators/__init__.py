"""Servers that speak a vendor's wire on the loopback and account for its cache by its rules.

They know nothing of Lamina's ledger: what a request cost is worked out from the bytes on the wire
alone.

Private: see `lamina` for what is public.
"""
