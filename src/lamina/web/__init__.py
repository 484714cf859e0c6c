"""Pages and pictures from the web, fetched as rules allow."""
