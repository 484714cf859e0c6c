"""Inspecting what was sent. Pure.

Rebuilding requests, verifying them, counting what was used.

Private: see `lamina` for what is public.
"""
