"""Vectors of texts, computed on this machine, and the index that stores them.

Private: see `lamina` for what is public.
"""
