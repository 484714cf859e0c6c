"""`lamina rpc`: a session over JSON-RPC on standard input and output."""
