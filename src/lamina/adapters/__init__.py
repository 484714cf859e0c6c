"""The world behind the ports: files, stores, providers, tools, pages, search and foreign formats.

The rooms are strangers to one another; only `files` is used by all of them.

Private: see `lamina` for what is public.
"""
