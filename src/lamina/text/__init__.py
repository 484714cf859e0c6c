"""Values to the text a model reads. One-way: nothing rendered is ever parsed back."""

from lamina.text.rendering import (
    LIBRARY_HEADER,
    QUERY_FRAME,
    RULES_SENTENCE,
    escape_content,
    label_of,
    one_line,
    rank_of,
    render_bare,
    render_item,
    render_names,
    render_project,
    render_tool_texts,
)

__all__ = [
    "LIBRARY_HEADER",
    "QUERY_FRAME",
    "RULES_SENTENCE",
    "escape_content",
    "label_of",
    "one_line",
    "rank_of",
    "render_bare",
    "render_item",
    "render_names",
    "render_project",
    "render_tool_texts",
]
