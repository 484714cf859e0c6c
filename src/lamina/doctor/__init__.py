"""Anybody's requests, looked at afterwards: where a cache did not hit, why, and what that cost.

`requests/` reads the logs and transcripts of other programs, and Lamina's own sessions; what judges
them works on plain records and knows no file.

Private: see `lamina` for what is public.
"""
