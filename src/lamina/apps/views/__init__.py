"""What every app shows and asks, as plain records; independent of terminal and web server.

Private: see `lamina` for what is public.
"""
