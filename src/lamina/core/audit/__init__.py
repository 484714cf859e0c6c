"""Inspects sent requests. Pure.

Rebuilds requests, verifies them, and counts what was used.

Private: see `lamina` for what is public.
"""
