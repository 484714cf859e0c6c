"""Tools that a model can call: Python functions and MCP servers."""
