"""Stores journals.

Private: see `lamina` for what is public.
"""
