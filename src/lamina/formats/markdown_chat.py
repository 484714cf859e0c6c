"""Chats as Markdown, in the form that Obsidian Copilot reads and writes: what others use of it.

Law: nothing of a conversation is lost between a session and its file, and a file of the original
program loads as well as its format allows. No file is opened here.
"""

from lamina.formats.markdown_export import ExportedChat, chat_of, export_chat
from lamina.formats.markdown_file import file_name, parse_chat, render_chat
from lamina.formats.markdown_import import ImportedChat, Reattach, import_chat
from lamina.formats.markdown_values import (
    Chat,
    ChatContext,
    ChatMessage,
    Reference,
    ToolMessage,
    blocks_of,
)
from lamina.notes.naming import Resolved, resolve_note

__all__ = [
    "Chat",
    "ChatContext",
    "ChatMessage",
    "ExportedChat",
    "ImportedChat",
    "Reattach",
    "Reference",
    "Resolved",
    "ToolMessage",
    "blocks_of",
    "chat_of",
    "export_chat",
    "file_name",
    "import_chat",
    "parse_chat",
    "render_chat",
    "resolve_note",
]
