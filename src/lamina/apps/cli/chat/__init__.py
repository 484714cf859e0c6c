"""`lamina chat`: the screen, the views drawn on it, the input, and the commands."""
