"""Connects to MCP servers and offers their tools: configuration, connections, processes,
results."""
