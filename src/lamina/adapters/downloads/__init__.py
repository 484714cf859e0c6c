"""Getting the files of models onto this machine, and where they are kept.

Private: see `lamina` for what is public.
"""
