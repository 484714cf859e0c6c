"""Assembles a single request. Pure: a state and a draft go in, entries and a prompt come out.

Private: see `lamina` for what is public.
"""
