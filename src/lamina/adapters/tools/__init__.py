"""Tools that a model can call: Python functions and MCP servers.

Private: see `lamina` for what is public.
"""
