"""Chats as Markdown, in the form that Obsidian Copilot reads and writes: what others use of it.

Law: nothing of a conversation is lost between a session and its file, and a file of the original
program loads as well as its format allows. No file is opened here.
"""

from lamina.formats.markdown.chat import (
    ChatContext,
    ChatMessage,
    ChatReference,
    MarkdownChat,
    ToolMessage,
    blocks_of,
)
from lamina.formats.markdown.chat_file import file_name, parse_chat, render_chat
from lamina.formats.markdown.exporter import ExportedChat, chat_of, export_chat
from lamina.formats.markdown.importer import ImportedChat, Reattachment, import_chat

__all__ = [
    "MarkdownChat",
    "ChatContext",
    "ChatMessage",
    "ExportedChat",
    "ImportedChat",
    "Reattachment",
    "ChatReference",
    "ToolMessage",
    "blocks_of",
    "chat_of",
    "export_chat",
    "file_name",
    "import_chat",
    "parse_chat",
    "render_chat",
]
