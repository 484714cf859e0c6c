"""Emulates OpenAI's wire and prompt cache on the loopback."""
