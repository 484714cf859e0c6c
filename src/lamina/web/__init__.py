"""Pages and pictures from the web, fetched as rules allow."""

from lamina.web.fetching import Web, WebLimits

__all__ = ["Web", "WebLimits"]
