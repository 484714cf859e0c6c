"""Requests and their usage out of what programs leave behind, without importing any of it.

Law: files are read line by line and only what is needed of a line is kept, so that a store of
hundreds of megabytes is a matter of seconds. What cannot be read is reported and passed over.

Private: see `lamina` for what is public.
"""
