"""Gemini's emulator through Gemini's own SDK: what it answers, refuses and charges."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import httpx2
import pytest
from google import genai
from google.genai.errors import ClientError, ServerError

from lamina.emulators.answers import EmulatedAnswer, EmulatedCall, ScriptedAnswers
from lamina.emulators.emulator import serve_emulator
from lamina.emulators.faults import FAULT_KINDS, EmulatedFault
from lamina.emulators.gemini.emulator import GeminiEmulator

NEW, OLD = "gemini-3.1-pro-preview", "gemini-2.5-flash"
LONG = "The quay is deep enough for any ship that ever came here. " * 500
GONE = r"403 .*CachedContent not found \(or permission denied\)"


class Scene:
    def __init__(self, emulator: GeminiEmulator, address: str, http: httpx2.AsyncClient) -> None:
        self.emulator = emulator
        self.address = address
        self.http = http

    def sdk(self, key: str = "key") -> Any:
        options = genai.types.HttpOptions(base_url=self.address, httpx_async_client=self.http)
        return genai.Client(api_key=key, http_options=options).aio

    async def post(self, path: str, body: Any) -> httpx2.Response:
        headers = {"x-goog-api-key": "key"}
        return await self.http.post(f"{self.address}/v1/{path}", json=body, headers=headers)

    async def generate(self, body: Any, model: str = NEW) -> httpx2.Response:
        return await self.post(f"models/{model}:generateContent", body)


@asynccontextmanager
async def scene(*faults: EmulatedFault, answers: Any = None) -> AsyncIterator[Scene]:
    emulator = GeminiEmulator(answers=answers, faults=faults)
    async with serve_emulator(emulator) as address, httpx2.AsyncClient(trust_env=False) as http:
        yield Scene(emulator, address, http)


def user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": [_part(part) for part in parts]}


def model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [_part(part) for part in parts]}


def _part(each: Any) -> Any:
    return {"text": each} if isinstance(each, str) else each


CALL = {"functionCall": {"name": "look", "args": {}}}
RESULT = {"functionResponse": {"name": "look", "response": {"output": "there"}}}


def test_one_answer_in_one_piece_and_as_a_stream() -> None:
    async def main() -> None:
        answer = EmulatedAnswer(
            text="All is well.", thinking="Hm.", calls=(EmulatedCall(name="look"),)
        )
        async with scene(answers=ScriptedAnswers([answer])) as world:
            sdk = world.sdk()
            whole = await sdk.models.generate_content(model=NEW, contents="Well?")
            chunks = [
                chunk
                async for chunk in await sdk.models.generate_content_stream(
                    model=NEW, contents="Well?"
                )
            ]
            assert whole.text == "".join(chunk.text or "" for chunk in chunks) == "All is well."
            calls = [call for chunk in chunks for call in chunk.function_calls or ()]
            assert [call.name for call in calls] == ["look"]
            assert [call.name for call in whole.function_calls] == ["look"]
            assert whole.usage_metadata == chunks[-1].usage_metadata
            assert whole.usage_metadata.thoughts_token_count > 0
            reasons = [chunk.candidates[0].finish_reason for chunk in chunks]
            assert set(reasons[:-1]) == {None}
            assert reasons[-1] == whole.candidates[0].finish_reason == "STOP"

    anyio.run(main)


def test_models_are_listed_and_shown() -> None:
    async def main() -> None:
        async with scene() as world:
            sdk = world.sdk()
            listed = [each async for each in await sdk.models.list()]
            assert f"models/{OLD}" in [each.name for each in listed]
            shown = await sdk.models.get(model=NEW)
            assert shown.input_token_limit == 1_048_576
            with pytest.raises(ClientError, match="404 NOT_FOUND"):
                await sdk.models.get(model="gpt-5")

    anyio.run(main)


REFUSED: dict[str, tuple[Any, str]] = {
    "nothing asked": ({"contents": []}, "contents is not specified"),
    "unknown field": ({"contents": [user("Hi")], "prompt": "x"}, 'Unknown name "prompt"'),
    "unknown field inside": (
        {"contents": [{"role": "user", "parts": [{"txt": "Hi"}]}]}, 'Unknown name "txt" at',
    ),
    "unknown role": ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "valid role"),
    "model first": ({"contents": [model("Hi"), user("Hi")]}, "alternate"),
    "model last": ({"contents": [user("Hi"), model("Hi")]}, "last turn"),
    "no parts": ({"contents": [{"role": "user", "parts": []}]}, "is not specified"),
    "empty text": ({"contents": [user(" ")]}, "must not be empty"),
    "two kinds in a part": ({"contents": [user({"text": "x"} | RESULT)]}, "oneof field 'data'"),
    "call of the user": ({"contents": [user(CALL)]}, "does not belong"),
    "call without result": (
        {"contents": [user("Hi"), model(CALL), user("Well?")]}, "number of function response",
    ),
    "result without call": ({"contents": [user(RESULT)]}, "number of function response"),
    "results too few": (
        {"contents": [user("Hi"), model(CALL, CALL), user(RESULT)]}, "number of function response",
    ),
    "result of another": (
        {"contents": [user("Hi"), model(CALL), user(
            {"functionResponse": {"name": "other", "response": {}}})]},
        "number of function response",
    ),
    "unsigned call": (
        {"contents": [user("Hi"), model(CALL), user(RESULT)]}, "missing a thought_signature",
    ),
    "forged signature": (
        {"contents": [user("Hi"), model(CALL | {"thoughtSignature": "AAAA"}), user(RESULT)]},
        "Corrupted thought signature",
    ),
    "picture that is none": (
        {"contents": [user({"inlineData": {"mimeType": "image/png", "data": "?"}})]}, "Base64",
    ),
    "unknown media": (
        {"contents": [user({"inlineData": {"mimeType": "x/y", "data": "AAAA"}})]}, "MIME type",
    ),
    "tool twice": (
        {"contents": [user("Hi")], "tools": [
            {"functionDeclarations": [{"name": "look"}, {"name": "look"}]}]},
        "Duplicate function declaration",
    ),
    "tool name": (
        {"contents": [user("Hi")], "tools": [{"functionDeclarations": [{"name": "1 x"}]}]},
        "Invalid function name",
    ),
    "empty system": (
        {"contents": [user("Hi")], "systemInstruction": {"parts": [{"text": " "}]}}, "hold text",
    ),
    "temperature": (
        {"contents": [user("Hi")], "generationConfig": {"temperature": 9}}, "temperature",
    ),
    "thinking level": (
        {"contents": [user("Hi")], "generationConfig": {"thinkingConfig": {
            "thinkingLevel": "vast"}}},
        "thinking_level",
    ),
    "schema without JSON": (
        {"contents": [user("Hi")], "generationConfig": {"responseJsonSchema": {}}},
        "response_mime_type",
    ),
    "no such cache": (
        {"contents": [user("Hi")], "cachedContent": "cachedContents/none"}, "not found",
    ),
    "cache and system": (
        {"contents": [user("Hi")], "cachedContent": "cachedContents/none",
         "systemInstruction": {"parts": [{"text": "Be brief."}]}},
        "can not be used with GenerateContent request setting system_instruction",
    ),
}  # fmt: skip


def test_what_the_api_refuses_is_refused_in_its_own_words() -> None:
    async def main() -> None:
        async with scene() as world:
            for what, (body, problem) in REFUSED.items():
                answer = await world.generate(body)
                assert answer.status_code in (400, 403), what
                error = answer.json()["error"]
                assert answer.status_code == error["code"], what
                assert problem in error["message"], (what, error)
                assert error["status"] in ("INVALID_ARGUMENT", "PERMISSION_DENIED"), what
            assert all(row.status in (400, 403) for row in world.emulator.report.rows)
            assert len(world.emulator.report.rows) == len(REFUSED)

    anyio.run(main)


def test_older_models_need_no_signatures_and_know_no_levels() -> None:
    async def main() -> None:
        async with scene() as world:
            called = {"contents": [user("Hi"), model(CALL), user(RESULT)]}
            assert (await world.generate(called, OLD)).status_code == 200
            config = {"thinkingConfig": {"thinkingLevel": "low"}}
            body = {"contents": [user("Hi")], "generationConfig": config}
            assert "not supported" in (await world.generate(body, OLD)).text
            assert (await world.generate(body)).status_code == 200

    anyio.run(main)


def test_nobody_is_served_without_a_key() -> None:
    async def main() -> None:
        async with scene() as world:
            http = world.http
            path = f"{world.address}/v1beta/models/{NEW}:generateContent"
            body = {"contents": [user("Hi")]}
            answer = await http.post(path, json=body)
            assert answer.status_code == 403
            assert "unregistered callers" in answer.json()["error"]["message"]
            assert (await http.post(f"{path}?key=k", json=body)).status_code == 200

    anyio.run(main)


def test_every_fault_does_something() -> None:
    async def main() -> None:
        async with scene() as world:
            sdk = world.sdk()
            for kind in FAULT_KINDS:
                world.emulator.faults.add(EmulatedFault(kind=kind))
                assert not await finishes(sdk, 0.4), kind
                assert await finishes(sdk, 10.0), kind

    async def finishes(sdk: Any, within_s: float) -> bool:
        """Whether an answer comes to its end."""
        ended = False
        with anyio.move_on_after(within_s):
            try:
                stream = await sdk.models.generate_content_stream(model=NEW, contents="one two")
                async for chunk in stream:
                    ended = bool(chunk.candidates[0].finish_reason)
            except (ClientError, ServerError, ValueError, httpx2.HTTPError):
                pass
        return ended

    anyio.run(main)


# -- caches made by hand --------------------------------------------------------------------------


def test_caches_are_made_listed_shown_renewed_and_deleted() -> None:
    async def main() -> None:
        async with scene() as world:
            caches = world.sdk().caches
            config = {"system_instruction": LONG, "ttl": "3600s", "display_name": "harbour"}
            made = await caches.create(model=NEW, config=config)
            assert (made.model, made.display_name) == (f"models/{NEW}", "harbour")
            assert made.expire_time - made.create_time == timedelta(hours=1)
            assert made.usage_metadata.total_token_count > 4096
            other = await caches.create(model=OLD, config={"contents": [user(LONG)]})
            assert other.expire_time - other.create_time == timedelta(hours=1)
            pages = await caches.list(config={"page_size": 1})
            assert [page.name async for page in pages] == [made.name, other.name]
            world.emulator.clock.move(600)
            renewed = await caches.update(name=made.name, config={"ttl": "7200s"})
            assert renewed.expire_time - made.expire_time >= timedelta(seconds=4200)
            assert (await caches.get(name=made.name)).expire_time == renewed.expire_time
            await caches.delete(name=made.name)
            for gone in (caches.get, caches.delete):
                with pytest.raises(ClientError, match=GONE):
                    await gone(name=made.name)

    anyio.run(main)


def test_a_cache_that_cannot_be_is_refused() -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"system_instruction": "Too short."}, r"too small. total_token_count=\d+, min_.*=4096"),
        ({"system_instruction": LONG, "ttl": "1h"}, "Invalid value at 'ttl'"),
        ({"system_instruction": LONG, "ttl": "0s"}, "Invalid value at 'ttl'"),
        ({"system_instruction": LONG, "ttl": "1s", "expire_time": past}, "Only one of"),
        ({"system_instruction": LONG, "expire_time": past}, "future"),
        ({"contents": [model(LONG)]}, "alternate"),
    ]

    async def main() -> None:
        async with scene() as world:
            caches = world.sdk().caches
            for config, problem in refused:
                with pytest.raises(ClientError, match=problem):
                    await caches.create(model=NEW, config=config)

    anyio.run(main)


def test_only_the_end_of_a_cache_can_be_changed() -> None:
    async def main() -> None:
        async with scene() as world:
            made = await world.sdk().caches.create(model=NEW, config={"system_instruction": LONG})
            path, key = f"{world.address}/v1/{made.name}", {"x-goog-api-key": "key"}
            bodies: list[Any] = [{}, {"displayName": "x"}, {"contents": []}]
            for body in bodies:
                answer = await world.http.patch(path, json=body, headers=key)
                assert answer.status_code == 400, body

    anyio.run(main)


def test_a_request_reads_the_cache_it_names_and_no_other_model_or_key_may() -> None:
    async def main() -> None:
        async with scene() as world:
            sdk = world.sdk()
            made = await sdk.caches.create(model=NEW, config={"system_instruction": LONG})
            naming = {"model": NEW, "contents": "Well?", "config": {"cached_content": made.name}}
            answer = await sdk.models.generate_content(**naming)
            tokens = made.usage_metadata.total_token_count
            assert answer.usage_metadata.cached_content_token_count == tokens
            assert answer.usage_metadata.prompt_token_count > tokens
            with pytest.raises(ClientError, match="has to be the same"):
                await sdk.models.generate_content(**naming | {"model": OLD})
            with pytest.raises(ClientError, match=GONE):
                await world.sdk("another").models.generate_content(**naming)
            world.emulator.clock.move(3601)
            with pytest.raises(ClientError, match=GONE):
                await sdk.models.generate_content(**naming)

    anyio.run(main)


def test_the_report_has_what_making_and_keeping_a_cache_costs() -> None:
    async def main() -> None:
        async with scene() as world:
            caches = world.sdk().caches
            made = await caches.create(model=NEW, config={"system_instruction": LONG})
            tokens = made.usage_metadata.total_token_count
            world.emulator.clock.move(1800)
            report = (await world.http.get(f"{world.address}/report")).json()
            text = (await world.http.get(f"{world.address}/report?format=text")).text
            making, storage = report["rows"]
            assert making["cost"] == pytest.approx(tokens * 2.0 / 1e6)
            assert storage["cost"] == pytest.approx(tokens * 4.5 * 0.5 / 1e6, rel=0.01)
            assert report["total"]["cost"] == pytest.approx(making["cost"] + storage["cost"])
            assert f"storage of {made.name}" in text
            # After its end nothing more is paid.
            world.emulator.clock.move(9 * 3600)
            world.emulator.settle()
            assert world.emulator.report.rows[1].cost == pytest.approx(tokens * 4.5 / 1e6)

    anyio.run(main)


def test_the_report_says_why_there_was_no_more_in_the_cache() -> None:
    async def main() -> None:
        async with scene() as world:
            sdk = world.sdk()
            for contents in (
                [user(LONG)],
                [user(LONG), model("Yes."), user("And?")],
                [user("X" + LONG)],
            ):
                await sdk.models.generate_content(model=NEW, contents=contents)
            world.emulator.clock.move(301)
            await sdk.models.generate_content(model=NEW, contents=[user(LONG)])
            assert [row.missed for row in world.emulator.report.rows] == [
                "nothing sent before", "", "changed at contents[0]", "lifetime passed",
            ]  # fmt: skip

    anyio.run(main)


def test_tokens_are_counted_of_contents_or_of_a_whole_request() -> None:
    async def main() -> None:
        async with scene() as world:
            counted = await world.sdk().models.count_tokens(model=NEW, contents="One two three.")
            assert counted.total_tokens == 4
            body = {"contents": [user("Hi")], "generateContentRequest": {"contents": [user("Hi")]}}
            answer = await world.post(f"models/{NEW}:countTokens", body)
            assert answer.status_code == 400

    anyio.run(main)
