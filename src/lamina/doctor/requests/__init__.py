"""Requests and their usage, read from the files of other programs without importing them.

Law: files are read line by line and only the fields in use are kept, so that a store of hundreds of
megabytes takes seconds. What cannot be read is reported and skipped.

Private: see `lamina` for what is public.
"""
