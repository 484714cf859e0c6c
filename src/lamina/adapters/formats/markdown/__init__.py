"""Imports and exports chats as Markdown, in the format that Obsidian Copilot reads and writes.

Law: no part of a conversation is lost between a session and its file, and the original program's
files load as well as their format allows. No file is opened here.
"""
