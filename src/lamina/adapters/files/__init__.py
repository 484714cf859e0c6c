"""Access to folders: roots, paths, and the places of files.

Private: see `lamina` for what is public.
"""
