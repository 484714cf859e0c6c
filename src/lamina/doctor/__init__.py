"""Examines the requests of any program afterwards and reports cache misses, their causes and their
cost.

`requests/` reads requests from files, and `collector` combines many files. `findings`, `causes`,
`readings` and `prompt_comparison` evaluate requests independently of files and vendor wire formats.

Private: see `lamina` for what is public.
"""
