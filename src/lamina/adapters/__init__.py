"""The world behind the ports: files, stores, providers, tools, pages, search and other formats.

The rooms are strangers to one another; `files`, `downloads` and `extras` are what several of them
use. Private: see `lamina` for what users import.
"""
