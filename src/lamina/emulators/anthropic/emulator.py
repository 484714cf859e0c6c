"""Emulates Anthropic's Messages API on the loopback, as strict as the real one.

Laws: the cache figures it reports follow from the bodies it received and nothing else; a request
that is refused or fails costs nothing and leaves nothing in the cache. A request that continues a
conversation stored on the server (`thread`) counts as one that sends all of it.
"""

import itertools
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import anyio
import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from lamina.adapters.providers.tokens import counter_for
from lamina.core.values.settings import Target
from lamina.emulators.answers import EmulatedRequest, EmulatedRole, ask
from lamina.emulators.anthropic.blocks import as_blocks, chain_digest, read_blocks, referenced_tools
from lamina.emulators.anthropic.bound_thinking import (
    BINDING_BETA,
    ThinkingCheck,
    ThinkingControls,
    check_thinking,
    refuse_thinking,
    without_dropped,
)
from lamina.emulators.anthropic.cache import AnthropicCache, AnthropicCacheUse
from lamina.emulators.anthropic.checks import check_body
from lamina.emulators.anthropic.message_events import AnthropicMessage, compose_message
from lamina.emulators.anthropic.refusals import FAULT_REFUSALS, AnthropicRefusal, refuse_unless
from lamina.emulators.emulator import Emulator, Handler, hang_up
from lamina.emulators.faults import FaultKind

JSON = dict[str, Any]
# Fields set when a thread is created, which a continuing request does not repeat.
_CREATE_ONLY = ("system", "tools")


class AnthropicThreads:
    """Stores requests and their answers, by the answer's id."""

    def __init__(self) -> None:
        self._held: dict[str, JSON] = {}

    def resume(self, body: JSON) -> JSON:
        """Complete a request that may contain only new content.

        Raises:
            AnthropicRefusal: the thread does not exist, or is continued incorrectly.
        """
        thread = body.get("thread") or {}
        if thread.get("type") != "continue":
            refuse_unless(
                thread.get("type", "create") == "create",
                "thread: Input tag is not one of the expected tags: 'create', 'continue'",
            )
            return body
        held = self._held.get(str(thread.get("previous_message_id")))
        if held is None:
            raise AnthropicRefusal(
                "thread.previous_message_id: no such thread", status=404, kind="not_found_error",
                details={"error_code": "thread_not_found"},
            )  # fmt: skip
        for name in _CREATE_ONLY:
            refuse_unless(name not in body, f"{name}: cannot be set when continuing a thread")
        return held | body | {"messages": [*held["messages"], *body.get("messages", ())]}

    def keep(self, answer_id: str, body: JSON, content: Sequence[Mapping[str, Any]]) -> None:
        """Keep a request and its answer, if the request asks for that."""
        if not body.get("thread"):
            return
        answer = {"role": "assistant", "content": list(content)}
        state = {name: body[name] for name in _CREATE_ONLY if name in body}
        self._held[answer_id] = state | {"messages": [*body["messages"], answer]}


_WAIT_FAULTS = ("429", "throttle", "529")
SLOW_S = 1.0
# The default age of accounts: recent enough for every check to apply.
NEW_ACCOUNT = date(2026, 9, 15)
# Names used by Anthropic; the book need not list each.
_FAMILIES = re.compile(r"claude-(\d|(opus|sonnet|haiku|fable|mythos|instant)-\d)")


class AnthropicEmulator(Emulator):
    """`bodies` contains the requests in order, and `thinking_checks` the outcome for every request
    whose thinking was checked, including requests to count tokens. Every key is a separate account,
    created on the day `account_since`."""

    vendor = "anthropic"

    def __init__(self, *, account_since: date | str = NEW_ACCOUNT, **options: Any) -> None:
        super().__init__(**options)
        self.account_since = (
            date.fromisoformat(account_since) if isinstance(account_since, str) else account_since
        )
        self.cache = AnthropicCache()
        self.bodies: list[JSON] = []
        self.thinking_checks: list[ThinkingCheck] = []
        self.cache_uses: list[AnthropicCacheUse] = []
        self._threads = AnthropicThreads()
        self._numbers = itertools.count(1)

    def routes(self) -> Sequence[Route]:
        return [
            Route("/v1/messages", self._guard(self._messages), methods=["POST"]),
            Route("/v1/messages/count_tokens", self._guard(self._count), methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/v1/models/{model}", self._guard(self._model)),
        ]

    def _guard(self, handler: Handler) -> Handler:
        """Return the handler, with its refusals in the API's own format."""

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except AnthropicRefusal as refusal:
                return self._refuse(refusal)

        return handle

    # -- messages --------------------------------------------------------------------------------

    async def _messages(self, request: Request) -> Response:
        now = self.clock.now()
        fault = self.faults.next()
        controls = self._controls(request)
        body, target = await self._read(request, controls)
        self.bodies.append(body)
        if (failure := await self._fail(request, fault, target)) is not None:
            return failure
        check = self._check_thinking(body, target, controls)
        # Dropped content is neither read nor billed.
        read_body = without_dropped(body, check)
        tokens = _input_tokens(read_body, target)
        if tokens > target.window:
            raise _too_long(tokens, target)
        cache_use = self.cache.look_up(read_body, target, now)
        answer = await ask(self.answers, _read_request(read_body))
        message = compose_message(
            answer,
            number=next(self._numbers),
            body=body,
            target=target,
            controls=controls,
            check=check,
            cache_use=cache_use,
            diagnostics=self.cache.diagnose(cache_use),
            count=counter_for(target).count,
        )
        self.cache_uses.append(cache_use)
        self.cache.keep_fingerprint(message.id, cache_use)
        self._threads.keep(message.id, body, message.content)
        if not body.get("stream"):
            self.cache.begin(cache_use)
            self._note(cache_use, target, message.output)
            return self._json(message.body())
        events = self._stream(request, message, cache_use, target, fault)
        return StreamingResponse(
            events, media_type="text/event-stream; charset=utf-8", headers=_headers(message.number)
        )

    def _controls(self, request: Request) -> ThinkingControls:
        betas = ",".join(request.headers.getlist("anthropic-beta"))
        key = request.headers.get("x-api-key") or request.headers.get("authorization") or ""
        return ThinkingControls(
            has_beta=BINDING_BETA in (beta.strip() for beta in betas.split(",")),
            account=chain_digest("account", key)[:12],
            since=self.account_since,
        )

    def _check_thinking(
        self, body: JSON, target: Target, controls: ThinkingControls
    ) -> ThinkingCheck:
        check = check_thinking(body, target, controls)
        self.thinking_checks.append(check)
        refuse_thinking(body, check, controls)
        return check

    async def _read(
        self, request: Request, controls: ThinkingControls, *, counting: bool = False
    ) -> tuple[JSON, Target]:
        if not request.headers.get("x-api-key") and not request.headers.get("authorization"):
            raise AnthropicRefusal(
                "x-api-key header is required", status=401, kind="authentication_error"
            )
        if not request.headers.get("anthropic-version"):
            raise AnthropicRefusal("anthropic-version: header is required")
        try:
            body = msgspec.json.decode(await request.body(), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise AnthropicRefusal("The request body is not valid JSON") from error
        target = self._find(str(body.get("model", "")))
        body = self._threads.resume(body)
        check_body(body, target, counting=counting, has_binding_beta=controls.has_beta)
        return body, target

    def _find(self, model: str) -> Target:
        if model.startswith("claude-"):
            target = self.book.find(f"anthropic:{model}")
            if target.prices is not None or _FAMILIES.match(model):
                return target
        raise AnthropicRefusal(f"model: {model}", status=404, kind="not_found_error")

    async def _stream(
        self,
        request: Request,
        message: AnthropicMessage,
        cache_use: AnthropicCacheUse,
        target: Target,
        fault: FaultKind | None,
    ) -> AsyncIterator[bytes]:
        """Yield the events of an answer. From the first one on, its request is readable in the
        cache."""
        events = list(message.events())
        if fault in ("cut", "silent"):
            # Interrupted within the text: neither its end nor the message's is sent.
            events = events[: max(3, len(events) // 2 - 1)]
        has_ended = False
        self.cache.begin(cache_use)
        try:
            for event in events:
                yield event
                if fault == "slow" and event.startswith(b"event: content_block_delta"):
                    await anyio.sleep(SLOW_S)
                await anyio.lowlevel.checkpoint()
            if fault == "cut":
                has_ended = True
                await hang_up(request)
                await anyio.sleep_forever()
            has_ended = True
        finally:
            self.abandoned_count += not has_ended
            self._note(cache_use, target, message.output if has_ended and fault is None else 1)

    def _note(self, cache_use: AnthropicCacheUse, target: Target, output: int) -> None:
        self.report.add(cache_use.at, target, cache_use.usage(output), missed=cache_use.missed)

    # -- faults ----------------------------------------------------------------------------------

    async def _fail(
        self, request: Request, fault: FaultKind | None, target: Target
    ) -> Response | None:
        """Return the response sent instead of an answer; None if only the answer's stream is
        affected."""
        if fault == "overflow":
            raise _too_long(target.window + 1_234, target)
        if fault in FAULT_REFUSALS:
            status, kind, words = FAULT_REFUSALS[fault]
            wait = {"retry-after": f"{self.faults.retry_after(fault):g}"}
            headers = wait if fault in _WAIT_FAULTS else {}
            raise AnthropicRefusal(words, status=status, kind=kind, headers=headers)
        return await self.fail(fault, request)

    def _refuse(self, refusal: AnthropicRefusal) -> Response:
        number = next(self._numbers)
        model = self.bodies[-1].get("model") if self.bodies else None
        target = self.book.find(f"anthropic:{model or 'claude'}")
        self.note_refusal(target, refusal.status, str(refusal))
        body = {
            "type": "error",
            "error": {"type": refusal.kind, "message": str(refusal)} | refusal.extra,
            "request_id": f"req_{number:024x}",
        }
        return self._json(body, refusal.status, refusal.headers)

    def _json(self, body: JSON, status: int = 200, headers: JSON | None = None) -> Response:
        headers = _headers(next(self._numbers)) | (headers or {})
        return Response(msgspec.json.encode(body), status, headers, "application/json")

    def refuse_path(self, request: Request, status: int) -> Response:  # noqa: ARG002
        words = "Not Found" if status == 404 else "Method Not Allowed"
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        number = next(self._numbers)
        error = {"type": kind, "message": words}
        body = {"type": "error", "error": error, "request_id": f"req_{number:024x}"}
        return self._json(body, status)

    # -- the rest of the API ---------------------------------------------------------------------

    async def _count(self, request: Request) -> Response:
        controls = self._controls(request)
        body, target = await self._read(request, controls, counting=True)
        check = self._check_thinking(body, target, controls)
        return self._json({"input_tokens": _input_tokens(without_dropped(body, check), target)})

    async def _models(self, request: Request) -> Response:  # noqa: ARG002
        names: list[str] = getattr(self.book, "names", list)()
        models = [
            _describe_model(self._find(model.rstrip("*-")))
            for provider, _, model in (name.partition(":") for name in names)
            if provider == "anthropic" and model.startswith("claude-") and "[" not in model
        ]
        ends = {"first_id": models[0]["id"], "last_id": models[-1]["id"]} if models else {}
        return self._json({"data": models, "has_more": False} | ends)

    async def _model(self, request: Request) -> Response:
        return self._json(_describe_model(self._find(request.path_params["model"])))


def _describe_model(target: Target) -> JSON:
    return {
        "type": "model",
        "id": target.model,
        "display_name": target.model,
        "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": target.window,
        "max_tokens": target.max_output,
    }


def _headers(number: int) -> dict[str, str]:
    return {"request-id": f"req_{number:024x}"}


def _input_tokens(body: Mapping[str, Any], target: Target) -> int:
    return max((block.until for block in read_blocks(body, target)), default=0)


def _too_long(tokens: int, target: Target) -> AnthropicRefusal:
    return AnthropicRefusal(f"prompt is too long: {tokens} tokens > {target.window} maximum")


def _read_request(body: Mapping[str, Any]) -> EmulatedRequest:
    messages: list[tuple[EmulatedRole, str]] = []
    if system := body.get("system"):
        messages.append(("system", "\n".join(_texts(system))))
    for message in body["messages"]:
        kinds = {block.get("type") for block in as_blocks(message["content"])}
        role: EmulatedRole = "tool" if "tool_result" in kinds else message["role"]
        messages.append((role, "\n".join(_texts(message["content"]))))
    choice = body.get("tool_choice") or {}
    form = (body.get("output_config") or {}).get("format") or {}
    blocks = [block for message in body["messages"] for block in as_blocks(message["content"])]
    loaded = {name for block in blocks for name in referenced_tools(block)}
    return EmulatedRequest(
        messages=tuple(messages),
        tools={
            tool["name"]: tool["input_schema"]
            for tool in body.get("tools") or ()
            if "input_schema" in tool
            and (not tool.get("defer_loading") or tool["name"] in loaded)
            and choice.get("type") != "none"
            and choice.get("name", tool["name"]) == tool["name"]
        },
        called=tuple(_called(body["messages"])),
        must_call=choice.get("type") in ("any", "tool"),
        schema=form.get("schema"),
        max_tokens=body["max_tokens"],
    )


def _called(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the tools that were called since the last question, latest first."""
    for message in reversed(messages):
        blocks = list(as_blocks(message["content"]))
        if message["role"] == "user" and all(b.get("type") != "tool_result" for b in blocks):
            return
        yield from (block["name"] for block in blocks if block.get("type") == "tool_use")


def _texts(content: Any) -> Iterator[str]:
    for block in as_blocks(content):
        match block.get("type"):
            case "text":
                yield block["text"]
            case "tool_result":
                yield from _texts(block.get("content") or ())
            case _:
                pass
