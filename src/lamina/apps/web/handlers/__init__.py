"""The handlers of all routes: one module per noun, each with its rows of the table of routes."""
