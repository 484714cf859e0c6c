"""Where journals are kept.

Private: see `lamina` for what is public.
"""
