"""What sessions remember of what they sent: the same in memory and in a file, and never in the way
of a request."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from lamina.adapters.stores.memory import MemorySentPrefixes
from lamina.adapters.stores.sent_prefix_file import SentPrefixFile
from lamina.core.ports import SentPrefixes
from lamina.core.values.sent_prefix import MAX_PREFIXES, RecentPrefixes, SentPrefix

NOW = 1_794_000_000.0
PREFIX = SentPrefix(
    target="openai:m",
    form="f",
    key="k",
    digests=("a", "b"),
    at=NOW,
    expires=NOW + 300,
    marks=(1, 2),
)
Make = Callable[[Path], SentPrefixes]
KINDS: dict[str, Make] = {
    "memory": lambda _: MemorySentPrefixes(),
    "file": lambda folder: SentPrefixFile(folder / "cache" / "prefixes.sqlite"),
}


@pytest.fixture(params=KINDS)
def prefixes(request: pytest.FixtureRequest, tmp_path: Path) -> SentPrefixes:
    return KINDS[request.param](tmp_path)


def test_what_was_sent_is_there_until_it_expires(prefixes: SentPrefixes) -> None:
    async def body() -> None:
        assert await prefixes.recent("openai:m", NOW) == RecentPrefixes()
        await prefixes.keep(PREFIX)
        assert (await prefixes.recent("openai:m", NOW + 300)).prefixes == (PREFIX,)
        assert (await prefixes.recent("openai:m", NOW + 301)).prefixes == ()
        assert (await prefixes.recent("openai:other", NOW)).prefixes == ()
        await prefixes.aclose()

    anyio.run(body)


def test_what_is_sent_again_lives_on_and_what_comes_late_takes_nothing_back(
    prefixes: SentPrefixes,
) -> None:
    async def body() -> None:
        later = replace(PREFIX, at=NOW + 200, expires=NOW + 500)
        for prefix in (PREFIX, later, PREFIX):
            await prefixes.keep(prefix)
        assert (await prefixes.recent("openai:m", NOW + 400)).prefixes == (later,)
        await prefixes.aclose()

    anyio.run(body)


def test_the_latest_come_first_and_not_all_of_them(prefixes: SentPrefixes) -> None:
    async def body() -> None:
        for number in range(MAX_PREFIXES + 3):
            digests, at = ("a", f"{number}"), NOW + number
            await prefixes.keep(replace(PREFIX, digests=digests, at=at, expires=at + 300))
        found = (await prefixes.recent("openai:m", NOW + 100)).prefixes
        assert [prefix.digests[1] for prefix in found[:2]] == [
            f"{MAX_PREFIXES + 2}", f"{MAX_PREFIXES + 1}",
        ]  # fmt: skip
        assert len(found) == MAX_PREFIXES
        await prefixes.aclose()

    anyio.run(body)


def test_requests_are_counted_by_key_for_a_minute(prefixes: SentPrefixes) -> None:
    async def body() -> None:
        for key, at in (("k", NOW), ("k", NOW + 30), ("l", NOW + 31)):
            await prefixes.count(key, at)
        assert (await prefixes.recent("openai:m", NOW + 40)).rates == {"k": 2, "l": 1}
        assert (await prefixes.recent("openai:m", NOW + 70)).rates == {"k": 1, "l": 1}
        await prefixes.aclose()

    anyio.run(body)


def test_another_process_finds_what_was_sent(tmp_path: Path) -> None:
    async def body() -> None:
        first, second = (SentPrefixFile(tmp_path / "prefixes.sqlite") for _ in range(2))
        await first.keep(PREFIX)
        await first.count("k", NOW)
        found = await second.recent("openai:m", NOW)
        assert (found.prefixes, found.rates) == ((PREFIX,), {"k": 1})
        await first.aclose()
        await second.aclose()

    anyio.run(body)


def test_a_file_that_is_damaged_lost_or_not_ours_is_as_if_nothing_was_sent(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "prefixes.sqlite"
        prefixes = SentPrefixFile(path)
        await prefixes.keep(PREFIX)
        await prefixes.aclose()
        path.write_bytes(b"rubbish" * 500)
        assert (await prefixes.recent("openai:m", NOW)).prefixes == ()
        await prefixes.keep(PREFIX)
        assert (await prefixes.recent("openai:m", NOW)).prefixes == (PREFIX,)
        await prefixes.aclose()
        path.unlink()
        assert (await prefixes.recent("openai:m", NOW)).prefixes == ()
        blocked = SentPrefixFile(tmp_path / "prefixes.sqlite" / "below")
        path.write_bytes(b"")
        await blocked.keep(PREFIX)
        assert (await blocked.recent("openai:m", NOW)).prefixes == ()
        await blocked.aclose()

    anyio.run(body)


def test_nothing_of_a_text_is_kept(tmp_path: Path) -> None:
    async def body() -> None:
        path = tmp_path / "prefixes.sqlite"
        prefixes = SentPrefixFile(path)
        await prefixes.keep(PREFIX)
        await prefixes.aclose()
        assert set(SentPrefix.__struct_fields__) == {
            "target", "form", "key", "digests", "at", "expires", "source", "marks", "base",
            "cached_run",
        }  # fmt: skip

    anyio.run(body)
