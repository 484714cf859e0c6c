"""An open journal, the state it amounts to, and how requests are laid out from it.

Private: see `lamina` for what is public.
"""
