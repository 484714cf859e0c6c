"""One loop around a session; chat, agent, question answering and planned tools are its modes.

Private: see `lamina` for what is public.
"""
