"""Anybody's requests, looked at afterwards: where a cache did not hit, why, and what that cost.

`requests/` reads them out of files, and `collector` puts those of many files together. `findings`,
`causes`, `readings` and `prompt_comparison` judge values: they know no file and no vendor's wire.

Private: see `lamina` for what is public.
"""
