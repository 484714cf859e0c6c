"""Reads requests and their usage from the files of other programs, without importing those
programs.

Law: files are read line by line and only the fields in use are kept, so that a store of hundreds of
megabytes takes seconds. Unreadable content is reported and skipped.

Private: see `lamina` for what is public.
"""
