"""Sessions, turns and runners: async, and in touch with the world through `core.ports` alone.

Private: see `lamina` for what is public.
"""
