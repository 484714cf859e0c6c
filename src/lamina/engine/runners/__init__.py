"""Runs the loop around a session. Chat, agent, question answering and planned tools are its modes.

Private: see `lamina` for what is public.
"""
