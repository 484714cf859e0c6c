"""Sends requests to the embedded model, and reads its answer chunk by chunk, or its refusal."""

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Any

import anyio
import msgspec

from lamina.adapters.providers.local.llama_server import LlamaServer, defuse_control_tokens
from lamina.adapters.providers.local.slots import SlotLease
from lamina.adapters.providers.wires.llamacpp import (
    IN_TOOL_FORM,
    decode,
    is_in_tool_form,
    loosen_arguments,
)
from lamina.adapters.providers.wires.written_calls import (
    ToolFormReader,
    may_be_call,
    read_written_call,
)
from lamina.core.text.headers import QUERY
from lamina.core.values.wire import CallPiece, Piece, ProgressPiece, TextPiece, ThinkingPiece
from lamina.errors import ProviderError, RequestTooLong

# A passage of this length that occurs a third time will repeat for ever.
REPEAT_LENGTH = 64
REPETITION = "repetition"


class NoGrammar(Exception):
    """llama.cpp cannot turn the schema into a grammar."""


def read_refusal(content: bytes, status: int) -> Exception:
    try:
        error = msgspec.json.decode(content)["error"]
        message, kind = str(error.get("message", "")), str(error.get("type", ""))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return ProviderError(
            f"the embedded model refused the request ({status}): {content[:200]!r}"
        )
    if kind == "exceed_context_size_error":
        return RequestTooLong(
            f"the embedded model says: {message}", error.get("n_prompt_tokens"), error.get("n_ctx")
        )
    if "grammar" in message.lower() or "schema" in message.lower():
        return NoGrammar(message)
    return ProviderError(f"the embedded model refused the request ({status}): {message}")


class LocalStreamReader:
    """Reads an answer while it arrives."""

    def __init__(self, *, in_form: bool, tool_names: Collection[str] = ()) -> None:
        self._form = ToolFormReader() if in_form else None
        self._tool_names = tool_names
        # Text that may turn out to be a call that the model wrote as text; None: it is not.
        self._held: str | None = "" if tool_names else None
        self._calls: dict[int, dict[str, Any]] = {}
        self._text: list[str] = []
        self._thought: list[str] = []
        self._usage: dict[str, Any] | None = None
        self._id = ""
        self._model = ""
        self.finish = ""
        self._has_name = False
        self._progress = ProgressPiece(done=0, total=0)
        self._piece_count = 0

    def goes_in_circles(self) -> bool:
        """Return whether the model repeats itself endlessly, as small ones do; checked only
        occasionally."""
        if self.finish or self._piece_count % 16:
            return False
        text = "".join(self._text)
        if text.count(text[-REPEAT_LENGTH:]) < 3 or len(text) < 4 * REPEAT_LENGTH:
            return False
        self.finish = REPETITION
        return True

    def feed(self, chunk: dict[str, Any]) -> list[Piece]:
        if "error" in chunk:
            raise read_refusal(msgspec.json.encode(chunk), 200)
        self._id = self._id or chunk.get("id", "")
        self._model = self._model or chunk.get("model", "")
        self._usage = chunk.get("usage") or self._usage
        pieces: list[Piece] = []
        if progress := chunk.get("prompt_progress"):
            self._progress = ProgressPiece(
                done=progress.get("processed", 0),
                total=progress.get("total", 0),
                cached=progress.get("cache", 0),
            )
            pieces.append(self._progress)
        for choice in chunk.get("choices") or ():
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                self._thought.append(thought)
                pieces.append(ThinkingPiece(thought))
            if text := delta.get("content"):
                self._text.append(text)
                self._piece_count += 1
                pieces += self._read(text)
            for call in delta.get("tool_calls") or ():
                self._piece_count += 1
                pieces.append(self._add_call(call))
            if self.finish and self._held is not None:
                pieces += self._end_held()
        return pieces

    def _add_call(self, delta: dict[str, Any]) -> Piece:
        """Return a piece for a call that llama.cpp recognised in the model's output."""
        index, function = delta.get("index", 0), delta.get("function") or {}
        name, arguments = function.get("name") or "", function.get("arguments") or ""
        call = self._calls.setdefault(index, {"function": {"name": "", "arguments": ""}})
        call["id"] = delta.get("id") or call.get("id")
        call["function"]["name"] += name
        call["function"]["arguments"] += arguments
        return CallPiece(index=index, name=name, arguments=arguments)

    def _hold(self, text: str) -> list[Piece]:
        """Return nothing while the text so far may be a call; otherwise all of it."""
        assert self._held is not None
        self._held += text
        if may_be_call(self._held):
            return []
        pieces: list[Piece] = [TextPiece(self._held)]
        self._held = None
        return pieces

    def _end_held(self) -> list[Piece]:
        """Release the held text as a call or as text."""
        text, self._held = self._held or "", None
        call = None if self._calls else read_written_call(text, self._tool_names)
        if call is None:
            return [TextPiece(text)] if text else []
        self._calls[0] = call
        self._text.clear()
        return [CallPiece(index=0, **call["function"])]

    def _read(self, text: str) -> list[Piece]:
        if self._held is not None:
            return self._hold(text)
        if self._form is None:
            return [TextPiece(text)]
        if piece := self._form.feed(text):
            return [TextPiece(piece)]
        if not self._form.is_call:
            return []
        name = "" if self._has_name else self._form.name
        self._has_name = self._has_name or bool(name)
        return [CallPiece(index=0, name=name, arguments=text)] if self._has_name else []

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._calls:
            message["tool_calls"] = [self._calls[index] for index in sorted(self._calls)]
        if self._thought:
            message["reasoning_content"] = "".join(self._thought)
        return {
            "id": self._id,
            "model": self._model.rpartition("/")[2],
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self._usage or self._estimate_usage(),
            IN_TOOL_FORM: self._form is not None,
        }

    def _estimate_usage(self) -> dict[str, Any]:
        """Estimate the usage of an answer that was stopped: the server reports usage only at the
        end."""
        return {
            "prompt_tokens": self._progress.total,
            "completion_tokens": self._piece_count,
            "prompt_tokens_details": {"cached_tokens": self._progress.cached},
        }


DATA = "data: "
DONE = "[DONE]"
# A small model that continues past its answer writes the person's next message, in our framing.
# llama.cpp ends the answer before it, so that it is neither seen nor recorded.
FRAME_STOPS = (QUERY.text.rstrip(), QUERY.opening)


class LocalClient:
    """A provider that runs a model in this process: one slot per session, and as many concurrent
    requests as slots."""

    def __init__(self, server: LlamaServer) -> None:
        self._server = server
        self._client: Any = None

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        request = self._wire_body(body)
        session = str(body.get("session", ""))
        async with self._server.slots.lease(session) as lease:
            request["id_slot"] = lease.number
            if lease.fresh:
                await self._recall(lease, session)
            try:
                async for piece in self._ask(request):
                    yield piece
            except NoGrammar as error:
                async for piece in self._ask(_loosen(request, error)):
                    yield piece

    async def release_session(self, session: str) -> None:
        """Save a session's slot to disk, if configured, and free it."""
        if not self._server.slots.has(session):
            return
        async with self._server.slots.lease(session) as lease:
            if not lease.fresh:
                await self._remember(lease.number, session)
        self._server.slots.release(session)

    async def _recall(self, lease: SlotLease, session: str) -> None:
        """Restore a session into a slot that another session had, after saving the other
        session."""
        files = self._server.slot_files
        if files is None:
            return
        if lease.previous_session:
            await self._remember(lease.number, lease.previous_session)
        if session and files.has(session) and not await self._act(lease.number, "restore", session):
            files.drop(session)

    async def _remember(self, slot: int, session: str) -> None:
        files = self._server.slot_files
        if files is None or not session:
            return
        if await self._act(slot, "save", session):
            await anyio.to_thread.run_sync(files.trim)
        else:
            files.drop(session)

    async def _act(self, slot: int, action: str, session: str) -> bool:
        """Make llama.cpp save or restore a slot. Return False on failure; the prompt is then read
        again."""
        import httpx2

        assert self._server.slot_files is not None
        payload = {"filename": self._server.slot_files.file_name(session)}
        try:
            response = await self._http().post(f"/slots/{slot}?action={action}", json=payload)
        except httpx2.HTTPError:
            return False
        return bool(response.status_code == 200)

    def _wire_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        control_tokens = self._server.control_tokens
        fields = {key: value for key, value in body.items() if key not in ("session", "model")}
        prompt = {key: fields[key] for key in ("messages", "tools") if key in fields}
        return fields | {
            **defuse_control_tokens(prompt, control_tokens),
            "cache_prompt": True,
            "stop": list(FRAME_STOPS),
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }

    def _http(self) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(
                base_url=self._server.address,
                headers={"Authorization": f"Bearer {self._server.key}"},
                trust_env=False,
                # Reading a long prompt takes a while; the caller can stop it.
                timeout=None,
                limits=httpx2.Limits(max_keepalive_connections=0),
            )
        return self._client

    async def _ask(self, body: dict[str, Any]) -> AsyncIterator[Piece]:
        import httpx2

        names = {tool["function"]["name"] for tool in body.get("tools", ())}
        reader = LocalStreamReader(in_form=is_in_tool_form(body), tool_names=names)
        try:
            async with self._http().stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != 200:
                    raise read_refusal(await response.aread(), response.status_code)
                async for line in response.aiter_lines():
                    if not line.startswith(DATA):
                        continue
                    data = line.removeprefix(DATA)
                    if data == DONE:
                        break
                    for piece in reader.feed(msgspec.json.decode(data)):
                        yield piece
                    if reader.goes_in_circles():
                        break
        except httpx2.HTTPError as error:
            raise ProviderError(f"the embedded model does not answer: {error!r}") from error
        if reader.finish:
            yield decode(reader.completion())


def _loosen(body: dict[str, Any], error: NoGrammar) -> dict[str, Any]:
    """Return the body without the schema for which llama.cpp has no grammar; the prompt is the
    same."""
    if is_in_tool_form(body):
        return loosen_arguments(body)
    if "tools" in body:
        # The template writes the tools anyway; only our own code then reads calls in the output.
        return body | {"tool_choice": "none"}
    raise ProviderError(f"the embedded model cannot answer in this form: {error}") from error
