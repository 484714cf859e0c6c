"""Sessions of other systems: as entries of ours (`detection`), and as requests (`requests/`).

Private: see `lamina` for what is public.
"""
