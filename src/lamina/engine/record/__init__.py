"""Keeps an open journal and its current state, and lays out requests from them.

Private: see `lamina` for what is public.
"""
