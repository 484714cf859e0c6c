"""Fetches web pages and images, as far as the rules allow.

Private: see `lamina` for what is public.
"""

from lamina.adapters.pages.fetcher import WebFetcher, WebLimits

__all__ = ["WebFetcher", "WebLimits"]
