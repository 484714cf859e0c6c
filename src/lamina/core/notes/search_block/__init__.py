"""Search blocks of notes: words, phrases, patterns and places, as Obsidian writes them."""
