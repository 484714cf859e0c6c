"""Importers for other programs' session files: reading their line formats, converting their
sessions to our entries (`detection`). Markdown chats are in `markdown/`. The small records that the
doctor reads from lines are next to the importer, in each program's module.

Private: see `lamina` for what is public.
"""
