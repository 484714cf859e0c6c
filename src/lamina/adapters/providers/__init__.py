"""Wires and clients for each vendor, local models, and the model and price books.

Private: see `lamina` for what is public.
"""
