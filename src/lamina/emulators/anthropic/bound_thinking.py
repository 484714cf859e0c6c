"""Signs thinking together with the content before it, and checks it when it is sent back.

Laws: a signature contains everything needed to judge its block, so a block is judged by itself and
the bytes of the request; the server stores nothing. `system`, the tools that count and every
earlier block must be unchanged; thinking and `cache_control` do not count. The preceding thinking
must be the end of the sequence that was sent when the block was made. Thinking that this server did
not sign cannot be judged here, and is kept.
"""

from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from hashlib import sha256
from typing import Any, Literal

import msgspec
from msgspec import Struct

from lamina.core.values.settings import Target
from lamina.emulators.anthropic.blocks import as_blocks, late_tools, referenced_tools
from lamina.emulators.anthropic.refusals import AnthropicRefusal, refuse_unless

JSON = Mapping[str, Any]
BINDING_BETA = "thinking-binding-controls-2026-08-01"
THINKING = ("thinking", "redacted_thinking")
# The prefix check applies to accounts created on or after this day, unless a request says
# otherwise.
ENFORCED_SINCE = date(2026, 8, 31)
# The beginning of every signature from this server.
_OWN = b"lamina"
_MAC_BYTES = 16
# Models whose thinking is bound to the account that made it, and one that drops instead of
# refusing.
_ACCOUNT_BOUND = ("claude-sonnet-5-[5-9]*", "claude-haiku-5-[5-9]*")
_DROPS_BY_DEFAULT = "claude-mythos-*"
_PLACES = {
    "system": "The `system` prompt differs from when the block was created.",
    "tools": "The `tools` list differs from when the block was created.",
    "messages": "The messages before the block differ from when it was created.",
    "before": "The thinking blocks before the block are not those from when it was created.",
}

MismatchReason = Literal[
    "organization_binding_mismatch", "model_binding_mismatch", "prefix_binding_mismatch"
]
# The consequence of a failed prefix check; `allow` is for accounts that are exempt.
MismatchBehaviour = Literal["error", "drop_block", "allow"]


class ThinkingPrefix(Struct, frozen=True, kw_only=True):
    """Everything before a block as digests, and the thinking blocks there in order."""

    system: str
    tools: str
    messages: str
    before: tuple[str, ...] = ()

    def find_change(self, now: "ThinkingPrefix") -> str:
        """Return the part that changed; empty if a block may be read after `now`."""
        for name in ("system", "tools", "messages"):
            if getattr(self, name) != getattr(now, name):
                return name
        # Blocks removed from the start are not missed; a gap is, and so is a block put back later.
        kept = len(now.before)
        is_end = kept <= len(self.before) and self.before[len(self.before) - kept :] == now.before
        return "" if is_end else "before"


class SignedThinking(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a block's signature; models that bind nothing have no `prefix`."""

    model: str
    account: str
    text: str
    prefix: ThinkingPrefix | None = None


class ThinkingCheck(Struct, frozen=True, kw_only=True):
    """The outcome for a request's thinking blocks: their paths, and why some were not kept. Blocks
    in `allowed` fail the prefix check, but the account is exempt."""

    kept: tuple[str, ...] = ()
    dropped: Mapping[str, MismatchReason] = {}
    allowed: Mapping[str, MismatchReason] = {}
    refused: Mapping[str, MismatchReason] = {}

    def transformations(self) -> list[dict[str, str]]:
        kinds = ("thinking_dropped", self.dropped), ("thinking_mismatch_allowed", self.allowed)
        found = [
            {"type": kind, "path": path, "reason": reason}
            for kind, paths in kinds
            for path, reason in paths.items()
        ]
        return sorted(found, key=lambda change: _place(change["path"]))


class ThinkingControls(Struct, frozen=True, kw_only=True):
    """Settings besides the body that affect thinking: the beta header, and the account."""

    has_beta: bool
    account: str
    since: date

    def behaviour(self, body: JSON, target: Target) -> MismatchBehaviour:
        binding = (body.get("thinking") or {}).get("block_binding") or {}
        wanted: MismatchBehaviour | None = binding.get("prefix_mismatch_behavior")
        if wanted is not None:
            return wanted
        if self.since < ENFORCED_SINCE:
            return "allow"
        return "drop_block" if fnmatchcase(target.model, _DROPS_BY_DEFAULT) else "error"


# -- signatures ----------------------------------------------------------------------------------


def sign_thinking(text: str, target: Target, account: str, prefix: ThinkingPrefix) -> str:
    """Sign a thinking block that follows `prefix`."""
    signed = SignedThinking(
        model=target.model,
        account=account,
        text=_digest(text),
        prefix=prefix if target.binds_thinking else None,
    )
    return _seal(msgspec.json.encode(signed))


def _seal(content: bytes) -> str:
    return b64encode(_OWN + content + _mac(content)).decode()


def _mac(content: bytes) -> bytes:
    return sha256(b"the server's own secret\x1f" + content).digest()[:_MAC_BYTES]


def is_own(signature: str) -> bool:
    """Return whether a signature claims to be from this server."""
    return signature.startswith(b64encode(_OWN).decode())


def read_signature(block: JSON) -> SignedThinking | None:
    """Read a block's signature; None if this server did not make it for this text."""
    try:
        sealed = b64decode(_signature(block), validate=True)
    except NotBase64:
        return None
    content, mac = sealed[len(_OWN) : -_MAC_BYTES], sealed[-_MAC_BYTES:]
    if not sealed.startswith(_OWN) or mac != _mac(content):
        return None
    signed = msgspec.json.decode(content, type=SignedThinking)
    is_redacted = block.get("type") == "redacted_thinking"
    return signed if is_redacted or signed.text == _digest(block.get("thinking", "")) else None


def _signature(block: JSON) -> str:
    return str(block.get("data" if block.get("type") == "redacted_thinking" else "signature", ""))


def _digest(*texts: str) -> str:
    return sha256("\x1e".join(texts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


# -- the content before a block ------------------------------------------------------------------


class _Front:
    """A request's content so far, block by block."""

    def __init__(self, body: JSON) -> None:
        self._system = _digest(*map(_canonical, as_blocks(body.get("system") or ())))
        self._tools: list[JSON] = list(body.get("tools") or ())
        self._late = set(late_tools(body))
        self._messages = ""
        self._before: list[str] = []

    def add(self, role: str, block: JSON) -> None:
        if block.get("type") in THINKING:
            self._before.append(_digest(_signature(block))[:8])
        elif str(block.get("text", "-")).strip():
            # Blank content cannot be sent back.
            self._messages = _digest(self._messages, role, _canonical(block))
            self._late.difference_update(referenced_tools(block))

    def prefix(self) -> ThinkingPrefix:
        tools = [_canonical(tool) for tool in self._tools if tool.get("name") not in self._late]
        return ThinkingPrefix(
            system=self._system,
            tools=_digest(*tools),
            messages=self._messages,
            before=tuple(self._before),
        )


def _canonical(block: JSON) -> str:
    return msgspec.json.encode(_compared(block), order="sorted").decode()


def _compared(value: Any) -> Any:
    """Reduce a value to the parts that are compared. Empty fields count as absent."""
    if isinstance(value, Mapping):
        return {
            key: _compared(inside)
            for key, inside in value.items()
            if inside is not None and key not in ("cache_control", "defer_loading")
        }
    if isinstance(value, list | tuple):
        return [_compared(inside) for inside in value]
    return value


def sign_answer(
    blocks: Sequence[dict[str, Any]], body: JSON, target: Target, account: str
) -> list[dict[str, Any]]:
    """Sign the thinking in an answer to `body`: every block together with the request and the
    blocks before it."""
    if all(block["type"] not in THINKING for block in blocks):
        return list(blocks)
    front = _Front(body)
    for _, role, block in _walk(body):
        front.add(role, block)
    signed: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] in THINKING:
            name = "data" if block["type"] == "redacted_thinking" else "signature"
            text = str(block.get("thinking", ""))
            block = block | {name: sign_thinking(text, target, account, front.prefix())}
        front.add("assistant", block)
        signed.append(block)
    return signed


def _walk(body: JSON) -> Iterator[tuple[str, str, JSON]]:
    for index, message in enumerate(body["messages"]):
        for place, block in enumerate(as_blocks(message["content"])):
            yield f"messages.{index}.content.{place}", str(message["role"]), block


def _place(path: str) -> tuple[int, int]:
    _, message, _, block = path.split(".")
    return int(message), int(block)


# -- the checks ----------------------------------------------------------------------------------


def check_thinking(body: JSON, target: Target, controls: ThinkingControls) -> ThinkingCheck:
    """Judge every thinking block in a request: by account, then by model, then by prefix. Only
    a prefix failure can be refused, which `refuse_thinking` does."""
    behaviour = controls.behaviour(body, target)
    kept: list[str] = []
    failed: dict[str, dict[str, MismatchReason]] = {"drop_block": {}, "allow": {}, "error": {}}
    front = _Front(body)
    for path, role, block in _walk(body):
        if block.get("type") in THINKING:
            signed = read_signature(block) if is_own(_signature(block)) else None
            reason = _find_mismatch(signed, target, controls, front) if signed else None
            if reason is None:
                kept.append(path)
            elif reason == "prefix_binding_mismatch":
                failed[behaviour][path] = reason
            else:
                failed["drop_block"][path] = reason
        front.add(role, block)
    return ThinkingCheck(
        kept=tuple(kept),
        dropped=failed["drop_block"],
        allowed=failed["allow"],
        refused=failed["error"],
    )


def _find_mismatch(
    signed: SignedThinking, target: Target, controls: ThinkingControls, front: _Front
) -> MismatchReason | None:
    is_elsewhere = signed.account != controls.account
    if is_elsewhere and any(fnmatchcase(signed.model, pattern) for pattern in _ACCOUNT_BOUND):
        return "organization_binding_mismatch"
    if not target.reads_thinking_of(signed.model):
        return "model_binding_mismatch"
    if target.binds_thinking and signed.prefix and signed.prefix.find_change(front.prefix()):
        return "prefix_binding_mismatch"
    return None


def refuse_thinking(body: JSON, check: ThinkingCheck, controls: ThinkingControls) -> None:
    """Refuse a request whose thinking fails the prefix check, if that is an error.

    Raises:
        AnthropicRefusal: with the path of the first block that fails.
    """
    if not check.refused:
        return
    first = next(iter(check.refused))
    front = _Front(body)
    for path, role, block in _walk(body):
        if path == first:
            signed = read_signature(block)
            assert signed is not None
            assert signed.prefix is not None
            words = [
                f"{path}: Invalid `signature` in `thinking` block. The block is bound to a "
                f"different conversation. Remove the block, or set "
                f'`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
            ]
            if not controls.has_beta:
                words.append(
                    f"That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` "
                    f"header."
                )
            words.append(_PLACES[signed.prefix.find_change(front.prefix())])
            raise AnthropicRefusal(" ".join(words))
        front.add(role, block)


def without_dropped(body: dict[str, Any], check: ThinkingCheck) -> dict[str, Any]:
    """Return the request as the model sees it, and as it is billed."""
    if not check.dropped:
        return body
    messages = [
        message
        if isinstance(message["content"], str)
        else message
        | {
            "content": [
                block
                for place, block in enumerate(message["content"])
                if f"messages.{index}.content.{place}" not in check.dropped
            ]
        }
        for index, message in enumerate(body["messages"])
    ]
    return body | {"messages": messages}


# -- request settings ----------------------------------------------------------------------------

# The valid thinking settings, by model; models that do not bind accept any.
_TYPES = {
    "claude-sonnet-5-[5-9]*": ("adaptive", "between_tools"),
    "claude-haiku-5-[5-9]*": ("adaptive", "disabled"),
    "*": ("adaptive",),
}
_SAMPLING = {"temperature": 1, "top_p": 1, "top_k": None}


def check_controls(body: JSON, target: Target, *, has_beta: bool) -> None:
    """Refuse parameters that models with bound thinking do not accept, and invalid settings.

    Raises:
        AnthropicRefusal: with the API's words.
    """
    config = body.get("thinking")
    if config is not None:
        _check_config(config, target, has_beta=has_beta)
    if not target.takes_sampling:
        for name, default in _SAMPLING.items():
            refuse_unless(
                body.get(name, default) in (default, None),
                f"`{name}` is deprecated for this model.",
            )
    if target.binds_thinking:
        choice = (body.get("tool_choice") or {}).get("type")
        refuse_unless(
            choice not in ("any", "tool") or fnmatchcase(target.model, "claude-haiku-*"),
            f"tool_choice: type '{choice}' is not supported for this model.",
        )
        refuse_unless(
            body["messages"][-1]["role"] != "assistant",
            "This model does not support assistant message prefill. The conversation must end with "
            "a user message.",
        )


def _check_config(config: Any, target: Target, *, has_beta: bool) -> None:
    refuse_unless(isinstance(config, dict) and config.get("type"), "thinking.type: Field required")
    kind = config["type"]
    if target.binds_thinking:
        pattern = next(pattern for pattern in _TYPES if fnmatchcase(target.model, pattern))
        refuse_unless(
            kind in _TYPES[pattern],
            f'"thinking.type.{kind}" is not supported for this model. Use '
            f'"thinking.type.{_TYPES[pattern][-1]}".',
        )
    if "block_binding" not in config:
        return
    at = f"thinking.{kind}.block_binding"
    is_taken = kind == "adaptive" or (kind == "enabled" and not target.binds_thinking)
    refuse_unless(has_beta and is_taken, f"{at}: Extra inputs are not permitted")
    binding = config["block_binding"] or {}
    extra = sorted(set(binding) - {"prefix_mismatch_behavior"})
    refuse_unless(not extra, f"{at}.{''.join(extra[:1])}: Extra inputs are not permitted")
    refuse_unless(
        binding.get("prefix_mismatch_behavior") in (None, "error", "drop_block"),
        f"{at}.prefix_mismatch_behavior: Input should be 'error' or 'drop_block'",
    )
