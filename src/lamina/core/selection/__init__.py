"""Selects items that match a question: chunks, terms, ranks, choices. Pure; takes given vectors.

`import lamina` imports nothing from here: the arithmetic needs numpy, which is slow to load.

Private: see `lamina` for what is public.
"""
