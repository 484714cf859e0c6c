"""Frozen records, one noun per module. They are independent of files, clocks and providers.

Private: see `lamina` for what is public.
"""
