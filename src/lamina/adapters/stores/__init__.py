"""The stores that keep journals.

Private: see `lamina` for what is public.
"""
