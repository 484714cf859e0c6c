"""Wires and clients per vendor, local models, and the books of models and prices.

Private: see `lamina` for what is public.
"""
