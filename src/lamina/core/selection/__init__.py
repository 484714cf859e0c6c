"""Which items match a question: chunks, terms, ranks, choices. Pure; vectors are passed in.

`import lamina` imports nothing from here: the arithmetic needs numpy, which is slow to load.

Private: see `lamina` for what is public.
"""
