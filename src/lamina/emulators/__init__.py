"""Loopback servers that emulate vendors' wires and account for their caches by the vendors' rules.

They do not depend on Lamina's ledger: a request's cost follows from the bytes on the wire alone.

Private: see `lamina` for what is public.
"""
