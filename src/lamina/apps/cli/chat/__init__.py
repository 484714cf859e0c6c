"""`lamina chat`, by noun: the screen, what is drawn on it, what is typed, and the commands."""
