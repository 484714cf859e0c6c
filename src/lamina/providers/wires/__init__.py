"""Per vendor a pure `encode` and `decode`.

A prompt to a request body, a reply to blocks and usage.
"""
