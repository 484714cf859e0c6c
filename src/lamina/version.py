"""The version of this package, said once.

Private: see `lamina` for what is public.
"""

__version__ = "0.1.0"
