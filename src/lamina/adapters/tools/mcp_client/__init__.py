"""Tools from MCP servers: configuration, connections, processes and results."""
