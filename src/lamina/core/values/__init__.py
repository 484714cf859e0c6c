"""Frozen records, one noun per module. They know nothing of files, clocks or providers.

Private: see `lamina` for what is public.
"""
