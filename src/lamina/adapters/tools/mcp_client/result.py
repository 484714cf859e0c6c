"""The answer of an MCP server as text for a model.

Law: what is not text is named with its kind and size, never dropped and never sent as base64.
"""

from typing import TYPE_CHECKING, Any

from lamina.adapters.tools.limits import NO_RESULT, cut_output
from lamina.core.codec import canonical_bytes
from lamina.core.values.tool import ToolOutput
from lamina.errors import InvalidText

if TYPE_CHECKING:
    from mcp_types import CallToolResult, ContentBlock


def read_result(result: "CallToolResult", limit: int) -> ToolOutput:
    """The answer to a call; structured content only without a text, which would say the same."""
    parts = [_block(block) for block in result.content]
    if result.structured_content is not None and not any(
        block.type == "text" and block.text for block in result.content
    ):
        parts.append(_structured(result.structured_content))
    # One block is not copied: it may be large.
    text = parts[0] if len(parts) == 1 else "\n".join(parts)
    return cut_output(text or NO_RESULT, limit, is_error=result.is_error)


def _block(block: "ContentBlock") -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type} {block.mime_type}, {_decoded_size(block.data):,} bytes]"
        case "resource_link":
            kind = f" {block.mime_type}" if block.mime_type else ""
            return f"[resource{kind} {block.uri}]"
        case "resource":
            return _resource(block.resource)


def _resource(resource: Any) -> str:
    text = getattr(resource, "text", None)
    if text is not None:
        return f"[resource {resource.uri}]\n{text}"
    kind = resource.mime_type or "application/octet-stream"
    return f"[resource {kind} {resource.uri}, {_decoded_size(resource.blob):,} bytes]"


def _decoded_size(data: str) -> int:
    """The number of bytes that base64 text encodes."""
    return len(data) * 3 // 4 - data[-2:].count("=")


def _structured(value: Any) -> str:
    try:
        return canonical_bytes(value).decode()
    except (InvalidText, TypeError, OverflowError, RecursionError):
        return str(value)
