"""Pages and pictures from the web, fetched as rules allow."""

from lamina.pages.fetcher import WebFetcher, WebLimits

__all__ = ["WebFetcher", "WebLimits"]
