"""The one door into folders: roots, paths, and the places of files.

Private: see `lamina` for what is public.
"""
