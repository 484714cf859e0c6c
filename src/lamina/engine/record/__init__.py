"""An open journal, its current state, and how requests are laid out from it.

Private: see `lamina` for what is public.
"""
