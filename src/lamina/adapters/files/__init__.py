"""Accesses folders and files safely, through roots and checked paths.

Private: see `lamina` for what is public.
"""
