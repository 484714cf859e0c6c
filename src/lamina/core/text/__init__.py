"""Renders values to the text a model reads. One-way: nothing rendered is ever parsed back.

Private: see `lamina` for what is public.
"""

from lamina.core.text.citations import (
    RenumberedAnswer,
    SearchDocument,
    Source,
    has_citations,
    is_web_link,
    link_to,
    number_sources,
    render_search,
    renumber_citations,
    without_definitions,
)
from lamina.core.text.pictures import PictureRef, find_pictures
from lamina.core.text.renderer import (
    LIBRARY_HEADER,
    QUERY_FRAME,
    UNSEEN_PICTURE,
    attachment_rank,
    escape_content,
    label_of,
    one_line,
    open_block,
    render_bare,
    render_item,
    render_names,
    render_project,
    render_tool_texts,
)

__all__ = [
    "RenumberedAnswer",
    "SearchDocument",
    "LIBRARY_HEADER",
    "PictureRef",
    "QUERY_FRAME",
    "UNSEEN_PICTURE",
    "Source",
    "escape_content",
    "find_pictures",
    "label_of",
    "is_web_link",
    "link_to",
    "number_sources",
    "one_line",
    "open_block",
    "attachment_rank",
    "render_bare",
    "render_item",
    "render_names",
    "render_project",
    "render_search",
    "render_tool_texts",
    "has_citations",
    "renumber_citations",
    "without_definitions",
]
