"""Pages and pictures from the web, fetched as rules allow.

Private: see `lamina` for what is public.
"""

from lamina.adapters.pages.fetcher import WebFetcher, WebLimits

__all__ = ["WebFetcher", "WebLimits"]
