"""Wires, clients and emulators per vendor, the embedded model, and the book of models.

Private: see `lamina` for what is public.
"""
