"""Asks the embedded model, and gives its answer as it arrives."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import anyio
import msgspec

from lamina.adapters.providers.local.server import LlamaServer, defuse_control_tokens
from lamina.adapters.providers.local.slots import SlotLease
from lamina.adapters.providers.local.stream import LocalStreamReader, NoGrammar, read_refusal
from lamina.adapters.providers.wires.llamacpp import decode, is_in_tool_form, loosen_arguments
from lamina.core.text.headers import QUERY
from lamina.core.values.piece import Piece
from lamina.errors import ProviderError

DATA = "data: "
DONE = "[DONE]"
# A small model that goes on behind its answer writes the person's next message, as we frame it.
# llama.cpp ends the answer in front of it, so that nobody sees it and nothing records it.
FRAME_STOPS = (QUERY.text.rstrip(), QUERY.opening)


class LocalClient:
    """A provider that runs a model in this process: one slot per session, and as many requests at
    once as there are slots."""

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
        """Saves what was read of a session to disk, if that is wanted, and frees its slot."""
        if not self._server.slots.has(session):
            return
        async with self._server.slots.lease(session) as lease:
            if not lease.fresh:
                await self._remember(lease.number, session)
        self._server.slots.release(session)

    async def _recall(self, lease: SlotLease, session: str) -> None:
        """Restores what is remembered of a session into a slot that another had, after saving what
        was the other's."""
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
        """Has llama.cpp save or restore a slot. False if it failed; then the prompt is read
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
                # Reading a long prompt takes its time; the caller can stop it.
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
    """The body without the schema that llama.cpp has no grammar for; the prompt is the same."""
    if is_in_tool_form(body):
        return loosen_arguments(body)
    if "tools" in body:
        # The template writes them all the same; what the model writes is then read by us alone.
        return body | {"tool_choice": "none"}
    raise ProviderError(f"the embedded model cannot answer in this form: {error}") from error
