"""Files of other systems: the format of their lines, and their sessions as our entries
(`detection`). Chats as Markdown are in `markdown/`. The small records that the doctor reads from
lines are next to the importer, in each program's module.

Private: see `lamina` for what is public.
"""
