"""Implements a small query language over notes, from scanning to rendering, without a clock."""
