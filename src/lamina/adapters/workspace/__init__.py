"""Reads attached items from workspaces.

Private: see `lamina` for what is public.
"""
