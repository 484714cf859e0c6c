"""A small query language over notes: scanned, parsed, evaluated and rendered, without a clock."""
