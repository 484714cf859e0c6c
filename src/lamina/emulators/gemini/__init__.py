"""Emulates Gemini's wire and caches on the loopback."""
