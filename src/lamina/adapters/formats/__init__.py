"""Files of other systems: what their lines look like, and their sessions as entries of ours
(`detection`). Chats as Markdown are in `markdown/`. What the doctor reads of a line is a small
record beside the importer, in the module of its program.

Private: see `lamina` for what is public.
"""
