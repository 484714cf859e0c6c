"""Where attached things are read from.

Private: see `lamina` for what is public.
"""
