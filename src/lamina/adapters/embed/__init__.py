"""Computes text vectors on this machine, and stores them in an index.

Private: see `lamina` for what is public.
"""
