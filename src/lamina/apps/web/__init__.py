"""The web app's server: the sessions of this machine over HTTP, for a browser on it.

Laws: what is told is what `faces` tells, as JSON; a turn belongs to no connection; nothing listens
beyond the loopback.

Private: see `lamina` for what is public.
"""
