"""Collects everything that applies to a question.

Attachments, hooks, rules, references, tools and memory, through ports.

Private: see `lamina` for what is public.
"""
