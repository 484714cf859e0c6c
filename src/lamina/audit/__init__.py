"""What was sent, looked at afterwards. Pure.

Rebuilding requests, verifying them, counting what was used.
"""
