"""The web app's server: the sessions of this machine over HTTP, for a local browser.

Laws: it shows what `views` show, as JSON; a turn belongs to no connection; nothing listens beyond
the loopback.

Private: see `lamina` for what is public.
"""
