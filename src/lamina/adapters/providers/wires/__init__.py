"""Pure `encode` and `decode` functions for each vendor: from prompts to requests, from replies to
blocks."""
