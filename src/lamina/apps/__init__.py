"""What people run: the command line and the web app, the views they share, and the wiring below.

Private: see `lamina` for what is public.
"""
