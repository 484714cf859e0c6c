"""Asks the embedded model, and gives its answer as it comes."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import msgspec

from lamina.errors import ProviderError, RequestTooLong
from lamina.providers.local.server import LlamaServer, defuse_control_tokens
from lamina.providers.local.slots import SlotLease
from lamina.providers.wires.llamacpp import IN_TOOL_FORM, ToolFormReader, decode, loosen_arguments
from lamina.values.piece import CallPiece, Piece, ProgressPiece, TextPiece, ThinkingPiece

DATA = "data: "
DONE = "[DONE]"
# A run of words of this length that comes a third time will come for ever.
REPEAT_LENGTH = 64
REPETITION = "repetition"


class LocalClient:
    """A provider that is a model in this process. One slot per session, as many at once as it has
    slots."""

    def __init__(self, loaded: LlamaServer) -> None:
        self._loaded = loaded
        self._client: Any = None

    async def stream(self, body: Mapping[str, Any]) -> AsyncIterator[Piece]:
        sent = self._wire_body(body)
        session = str(body.get("session", ""))
        async with self._loaded.slots.of(session) as seat:
            sent["id_slot"] = seat.number
            if seat.fresh:
                await self._recall(seat, session)
            try:
                async for piece in self._ask(sent):
                    yield piece
            except _NoGrammar:
                async for piece in self._ask(loosen_arguments(sent)):
                    yield piece

    async def let_go(self, session: str) -> None:
        """Keeps what was read of a session on disk, if that is wanted, and gives its slot back."""
        if not self._loaded.slots.has(session):
            return
        async with self._loaded.slots.of(session) as seat:
            if not seat.fresh:
                await self._remember(seat.number, session)
        self._loaded.slots.leave(session)

    async def _recall(self, seat: SlotLease, session: str) -> None:
        """Puts what is remembered of a session into a slot that was another's, and keeps what was
        that other's."""
        memory = self._loaded.memory
        if memory is None:
            return
        if seat.taken_from:
            await self._remember(seat.number, seat.taken_from)
        if session and memory.has(session) and not await self._act(seat.number, "restore", session):
            memory.drop(session)

    async def _remember(self, slot: int, session: str) -> None:
        memory = self._loaded.memory
        if memory is None or not session:
            return
        if await self._act(slot, "save", session):
            await anyio.to_thread.run_sync(memory.tidy)
        else:
            memory.drop(session)

    async def _act(self, slot: int, action: str, session: str) -> bool:
        """Has llama.cpp save or restore a slot. False if it could not: then it is read again."""
        import httpx2

        assert self._loaded.memory is not None
        named = {"filename": self._loaded.memory.name_of(session)}
        try:
            done = await self._http().post(f"/slots/{slot}?action={action}", json=named)
        except httpx2.HTTPError:
            return False
        return bool(done.status_code == 200)

    def _wire_body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        messages = [
            message | {"content": defuse_control_tokens(message["content"], self._loaded.control)}
            for message in body["messages"]
        ]
        kept = {key: value for key, value in body.items() if key not in ("session", "model")}
        return kept | {
            "messages": messages,
            "cache_prompt": True,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,
        }

    def _http(self) -> Any:
        import httpx2

        if self._client is None:
            self._client = httpx2.AsyncClient(
                base_url=self._loaded.address,
                headers={"Authorization": f"Bearer {self._loaded.key}"},
                trust_env=False,
                # Reading a long prompt takes as long as it takes; whoever asked can stop it.
                timeout=None,
                limits=httpx2.Limits(max_keepalive_connections=0),
            )
        return self._client

    async def _ask(self, body: dict[str, Any]) -> AsyncIterator[Piece]:
        import httpx2

        answer = _Answer(in_form="response_format" in body)
        try:
            async with self._http().stream("POST", "/v1/chat/completions", json=body) as response:
                if response.status_code != 200:
                    raise _refusal(await response.aread(), response.status_code)
                async for line in response.aiter_lines():
                    if not line.startswith(DATA):
                        continue
                    data = line.removeprefix(DATA)
                    if data == DONE:
                        break
                    for piece in answer.feed(msgspec.json.decode(data)):
                        yield piece
                    if answer.goes_in_circles():
                        break
        except httpx2.HTTPError as error:
            raise ProviderError(f"the embedded model does not answer: {error!r}") from error
        if answer.finish:
            yield decode(answer.completion())


class _NoGrammar(Exception):
    """llama.cpp cannot make a grammar of the schema."""


def _refusal(content: bytes, status: int) -> Exception:
    try:
        error = msgspec.json.decode(content)["error"]
        said, kind = str(error.get("message", "")), str(error.get("type", ""))
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return ProviderError(
            f"the embedded model refused the request ({status}): {content[:200]!r}"
        )
    if kind == "exceed_context_size_error":
        return RequestTooLong(
            f"the embedded model says: {said}", error.get("n_prompt_tokens"), error.get("n_ctx")
        )
    if "grammar" in said.lower() or "schema" in said.lower():
        return _NoGrammar(said)
    return ProviderError(f"the embedded model refused the request ({status}): {said}")


class _Answer:
    """An answer that is coming in."""

    def __init__(self, *, in_form: bool) -> None:
        self._form = ToolFormReader() if in_form else None
        self._text: list[str] = []
        self._thought: list[str] = []
        self._usage: dict[str, Any] | None = None
        self._id = ""
        self._model = ""
        self.finish = ""
        self._named = False
        self._read_in = ProgressPiece(done=0, total=0)
        self._said = 0

    def goes_in_circles(self) -> bool:
        """Whether a model has begun to say the same over and over, as small ones do; asked for
        now and then."""
        if self.finish or self._said % 16:
            return False
        text = "".join(self._text)
        if text.count(text[-REPEAT_LENGTH:]) < 3 or len(text) < 4 * REPEAT_LENGTH:
            return False
        self.finish = REPETITION
        return True

    def feed(self, chunk: dict[str, Any]) -> list[Piece]:
        if "error" in chunk:
            raise _refusal(msgspec.json.encode(chunk), 200)
        self._id = self._id or chunk.get("id", "")
        self._model = self._model or chunk.get("model", "")
        self._usage = chunk.get("usage") or self._usage
        pieces: list[Piece] = []
        if progress := chunk.get("prompt_progress"):
            self._read_in = ProgressPiece(
                done=progress.get("processed", 0),
                total=progress.get("total", 0),
                cached=progress.get("cache", 0),
            )
            pieces.append(self._read_in)
        for choice in chunk.get("choices") or ():
            self.finish = choice.get("finish_reason") or self.finish
            delta = choice.get("delta") or {}
            if thought := delta.get("reasoning_content"):
                self._thought.append(thought)
                pieces.append(ThinkingPiece(thought))
            if text := delta.get("content"):
                self._text.append(text)
                self._said += 1
                pieces += self._read(text)
        return pieces

    def _read(self, text: str) -> list[Piece]:
        if self._form is None:
            return [TextPiece(text)]
        if said := self._form.feed(text):
            return [TextPiece(said)]
        if not self._form.is_call:
            return []
        name = "" if self._named else self._form.name
        self._named = self._named or bool(name)
        return [CallPiece(index=0, name=name, arguments=text)] if self._named else []

    def completion(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._thought:
            message["reasoning_content"] = "".join(self._thought)
        return {
            "id": self._id,
            "model": self._model.rpartition("/")[2],
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}],
            "usage": self._usage or self._counted(),
            IN_TOOL_FORM: self._form is not None,
        }

    def _counted(self) -> dict[str, Any]:
        """Usage of an answer that was stopped: the server tells it at the end only."""
        return {
            "prompt_tokens": self._read_in.total,
            "completion_tokens": self._said,
            "prompt_tokens_details": {"cached_tokens": self._read_in.cached},
        }
