"""The workspaces that attached items are read from.

Private: see `lamina` for what is public.
"""
