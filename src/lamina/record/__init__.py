"""An open journal, the state it amounts to, and how requests are laid out from it."""
