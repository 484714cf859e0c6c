"""What Anthropic's API refuses of the blocks of a request, and in which words.

Law: thinking that this server signed comes back unchanged. What another server signed cannot be
judged here, and is taken if it can be a signature at all.
"""

import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Mapping
from typing import Any

from lamina.emulators.anthropic.blocks import as_blocks
from lamina.emulators.anthropic.bound_thinking import is_own, read_signature
from lamina.emulators.anthropic.refusals import AnthropicRefusal, refuse_unless

JSON = Mapping[str, Any]
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
# How long a signature is at least.
_SHORTEST_SIGNATURE = 64
# What the tools give that Anthropic runs itself.
_VENDOR_RESULTS = (
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
    "tool_search_tool_result", "advisor_tool_result",
)  # fmt: skip
_FIELDS: dict[str, set[str]] = {
    "text": {"text", "citations", "cache_control"},
    "image": {"source", "cache_control"},
    "tool_use": {"id", "name", "input", "cache_control", "caller"},
    "tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
    "thinking": {"thinking", "signature"},
    "redacted_thinking": {"data"},
    "document": {"source", "title", "context", "citations", "cache_control"},
    "search_result": {"source", "title", "content", "citations", "cache_control"},
    "container_upload": {"file_id", "cache_control"},
    "tool_reference": {"tool_name", "cache_control"},
    "server_tool_use": {"id", "name", "input", "cache_control", "caller"},
    "mcp_tool_use": {"id", "name", "server_name", "input", "cache_control"},
    **{kind: {"tool_use_id", "content", "cache_control", "caller"} for kind in _VENDOR_RESULTS},
    "mcp_tool_result": {"tool_use_id", "content", "is_error", "cache_control"},
}
_ROLE_BLOCKS = {
    "system": {"text"},
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "assistant": {
        "text", "tool_use", "thinking", "redacted_thinking", "server_tool_use", "mcp_tool_use",
        "mcp_tool_result", "container_upload", *_VENDOR_RESULTS,
    },
    "tool_result": {"text", "image", "document", "search_result", "tool_reference"},
}  # fmt: skip
_MEDIA = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8",
    "image/gif": b"GIF8",
    "image/webp": b"RIFF",
}
_DOCUMENTS = {
    "base64": "application/pdf", "text": "text/plain", "content": None, "url": None, "file": None,
}  # fmt: skip


def check_block(block: JSON, role: str, at: str) -> None:
    """Refuses a block that does not belong to `role`, or is not as the API takes it."""
    refuse_unless(isinstance(block, dict), f"{at}: Input should be a valid dictionary")
    kind = block.get("type")
    refuse_unless(
        kind in _ROLE_BLOCKS[role],
        f"{at}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
        + ", ".join(repr(tag) for tag in sorted(_ROLE_BLOCKS[role])),
    )
    extra = sorted(set(block) - _FIELDS[str(kind)] - {"type"})
    refuse_unless(not extra, f"{at}.{kind}.{''.join(extra[:1])}: Extra inputs are not permitted")
    check_control(block, at)
    match kind:
        case "text":
            _check_text(block, at)
        case "image":
            _check_picture(block.get("source") or {}, at)
        case "tool_use":
            ids = f"{at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
            refuse_unless(_NAME.fullmatch(str(block.get("id", ""))), ids)
            refuse_unless(
                isinstance(block.get("input"), dict),
                f"{at}.tool_use.input: Input should be a valid dictionary",
            )
        case "tool_result":
            content = block.get("content")
            refuse_unless(
                content or not block.get("is_error"),
                f"{at}.tool_result: content cannot be empty if `is_error` is true",
            )
            for place, inside in enumerate(as_blocks(content or ())):
                check_block(inside, "tool_result", f"{at}.tool_result.content.{place}")
        case "thinking":
            _check_thinking(block, at)
        case "redacted_thinking":
            refuse_unless(
                not is_own(str(block.get("data", ""))) or read_signature(block),
                f"{at}: Invalid `data` in `redacted_thinking` block",
            )
        case "document":
            _check_document(block.get("source") or {}, at)
        case _:
            pass


def _check_text(block: JSON, at: str) -> None:
    text = block.get("text")
    refuse_unless(isinstance(text, str), f"{at}.text.text: Field required")
    if not text:
        refuse_unless(
            "cache_control" not in block,
            f"{at}.text: cache_control cannot be set for empty text blocks",
        )
        raise AnthropicRefusal("messages: text content blocks must be non-empty")
    refuse_unless(
        str(text).strip(), "messages: text content blocks must contain non-whitespace text"
    )


def _check_thinking(block: JSON, at: str) -> None:
    signature = block.get("signature")
    refuse_unless(signature, f"{at}.thinking.signature: Field required")
    signature = str(signature)
    refuse_unless(
        read_signature(block)
        if is_own(signature)
        else len(signature) >= _SHORTEST_SIGNATURE and _is_base64(signature),
        f"{at}: Invalid `signature` in `thinking` block",
    )


def _check_document(source: JSON, at: str) -> None:
    kind = source.get("type")
    refuse_unless(
        kind in _DOCUMENTS,
        f"{at}.document.source: Input tag '{kind}' found using 'type' does not match any of the "
        f"expected tags: {', '.join(map(repr, sorted(_DOCUMENTS)))}",
    )
    media = _DOCUMENTS[str(kind)]
    refuse_unless(
        media is None or source.get("media_type") == media,
        f"{at}.document.source.{kind}.media_type: Input should be '{media}'",
    )
    if kind == "base64":
        data = _read_base64(source.get("data"), f"{at}.document.source")
        refuse_unless(data.startswith(b"%PDF"), f"{at}.document.source: The PDF is not valid.")


def _check_picture(source: JSON, at: str) -> None:
    if source.get("type") in ("url", "file"):
        return
    refuse_unless(
        source.get("type") == "base64",
        f"{at}.image.source: Input tag '{source.get('type')}' found using 'type' does not match "
        f"any of the expected tags: 'base64', 'file', 'url'",
    )
    media = str(source.get("media_type"))
    refuse_unless(
        media in _MEDIA,
        f"{at}.image.source.base64.media_type: Input should be "
        + ", ".join(repr(media_type) for media_type in _MEDIA),
    )
    data = _read_base64(source.get("data"), f"{at}.image.source")
    refuse_unless(data.startswith(_MEDIA[media]), "Could not process image")


def _read_base64(data: Any, at: str) -> bytes:
    try:
        return b64decode(str(data or ""), validate=True)
    except NotBase64:
        raise AnthropicRefusal(f"{at}.base64.data: Invalid base64 data") from None


def _is_base64(text: str) -> bool:
    try:
        b64decode(text, validate=True)
    except NotBase64:
        return False
    return True


def check_control(block: JSON, at: str) -> None:
    """Refuses a marker that is not one."""
    control = block.get("cache_control")
    if control is None:
        return
    refuse_unless(
        isinstance(control, dict) and control.get("type") == "ephemeral",
        f"{at}.cache_control.type: Input should be 'ephemeral'",
    )
    extra = sorted(set(control) - {"type", "ttl"})
    refuse_unless(
        not extra, f"{at}.cache_control.{''.join(extra[:1])}: Extra inputs are not permitted"
    )
    refuse_unless(
        control.get("ttl", "5m") in ("5m", "1h"),
        f"{at}.cache_control.ttl: Input should be '5m' or '1h'",
    )
