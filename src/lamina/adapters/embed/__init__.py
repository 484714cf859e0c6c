"""Vectors of texts, made on this machine, and the index that keeps them.

Private: see `lamina` for what is public.
"""
