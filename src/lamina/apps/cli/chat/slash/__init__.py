"""The slash commands of `lamina chat`."""
