"""What each route does: one module per noun, each with its rows of the table of routes."""
