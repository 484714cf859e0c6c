"""Sessions, turns and runners: async, reaching the outside world only through `core.ports`.

Private: see `lamina` for what is public.
"""
