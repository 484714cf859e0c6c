"""Decides when and where history is cut, and summarises the removed part without a model.

Private: see `lamina` for what is public.
"""
