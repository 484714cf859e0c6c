"""Emulates Anthropic's wire and prefix cache on the loopback."""
