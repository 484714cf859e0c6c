"""What every face tells and asks, as plain records; no terminal, no web server.

Private: see `lamina` for what is public.
"""
