"""Chats as Markdown, in the form that Obsidian Copilot reads and writes.

Law: nothing of a conversation is lost between a session and its file, and a file of the original
program loads as well as its format allows. No file is opened here.
"""
