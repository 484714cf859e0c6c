"""Which items fit a question: chunks, terms, ranks, choices. Pure; vectors are passed in.

Nothing here is imported by `import lamina`: numbers need numpy, which takes its time.

Private: see `lamina` for what is public.
"""
