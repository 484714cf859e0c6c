"""Issue 16, B.10: settings are kept as they are meant, and what cannot be kept changes nothing."""

from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace
from tests.fakes.book import SMALL, FakeBook
from tests.fakes.clock import FakeClock
from tests.fakes.replies import openai_reply
from tests.fakes.sessions import World, run, system_of, talk
from tests.fakes.workspace import FakeWorkspace
from tests.golden.damages import line_with

import lamina
from lamina.adapters.stores.jsonl import JsonlStore
from lamina.core.audit.verification import verify
from lamina.core.values.entry import start_entry
from lamina.core.values.envelope import Options
from lamina.core.values.message import ToolDefinition
from lamina.core.values.patch import OptionsSet
from lamina.core.values.selection import SearchSettings, preset
from lamina.core.values.settings import Settings
from lamina.engine.session.session import Session
from lamina.errors import InvalidEntry, InvalidPatch, InvalidSetting, LaminaError, UsageError


async def on_disk(folder: Path, name: str = "s", **given: Any) -> Session:
    return await lamina.open_session(
        name, store=JsonlStore(folder, wait=0.0), book=FakeBook(), clock=FakeClock(),
        workspace=FakeWorkspace(), **given,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["conservative", "normal", "aggressive"])
def test_a_preset_by_its_name_is_the_preset(name: Any, tmp_path: Path) -> None:
    async def body() -> None:
        given = {"guide_search": name, "tool_search": {"top_n": 2}, "target": SMALL.name}
        async with await on_disk(tmp_path, system="S", settings=Settings(**given)) as session:
            before = session.settings
            await talk(session)
        assert before.guide_search == preset(name)
        assert before.tool_search == SearchSettings(top_n=2)
        async with await on_disk(tmp_path) as again:
            assert again.damage == ()
            assert again.settings == before
            assert system_of(await again.prepare("Q")) == "S"

    run(body())


def test_a_search_can_be_changed_by_preset_and_by_part(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path, settings=Settings(target=SMALL.name)) as session:
            await session.update_settings(guide_search="aggressive")
            assert session.settings.guide_search == preset("aggressive")
            await session.update_settings(guide_search={"top_n": 3})
            whole = session.settings.guide_search
            # Parts that were not named stay as they were.
            assert (whole.top_n, whole.top_k) == (3, preset("aggressive").top_k)
            await session.update_settings(guide_search=False, tool_search=False)
            assert session.settings.guide_search == replace(whole, search=False)
            assert not session.settings.tool_search.search
            await session.update_settings(guide_search=True)
            assert session.settings.guide_search == whole
            with pytest.raises(InvalidSetting, match="or whether to search"):
                await session.update_settings(tool_search=5)  # type: ignore[arg-type]
            await talk(session)
        async with await on_disk(tmp_path) as again:
            assert again.damage == ()
            assert again.settings.guide_search == whole

    run(body())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("guide_search", "loud"),
        ("guide_search", {"top": 3}),
        ("guide_search", {"top_n": "many"}),
        ("guide_search", 5),
        ("target", 5),
        ("window", True),
        ("window", "9000"),
        ("strip_turns", 2.5),
        ("history_priority", "high"),
        ("allow_hosts", "example.org"),
        ("allow_hosts", [5]),
        ("explicit_cache", 1),
        ("cache_ttl", ["5m"]),
        ("summary_timeout_s", float("nan")),
    ],
)
def test_a_wrong_setting_is_refused_by_name_and_changes_nothing(name: str, value: Any) -> None:
    async def body() -> None:
        world = World()
        session = await world.open("s")
        entries, settings = session.entries, session.settings
        with pytest.raises(InvalidSetting, match=name if not isinstance(value, dict) else "top"):
            await session.update_settings(**{name: value})
        assert (session.entries, session.settings) == (entries, settings)
        with pytest.raises(InvalidSetting):
            Settings(**{name: value})
        await talk(session)
        assert (await world.open("s")).entries == session.entries

    run(body())


OUT_OF_RANGE = [
    ("temperature", 9),
    ("max_tokens", 0),
    ("guide_search", {"top_k": 0}),
    ("tool_search", SearchSettings(top_k=0)),
]


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_what_no_model_or_search_takes_is_refused_when_it_is_given(name: str, value: Any) -> None:
    async def body() -> None:
        world = World()
        with pytest.raises(InvalidSetting, match=name):
            await world.open("s", **{name: value})
        if name in ("temperature", "max_tokens"):
            with pytest.raises(InvalidSetting, match=name):
                await world.open("s", options=Options(**{name: value}))
        assert not await world.store.has("s")
        session = await world.open("s")
        with pytest.raises(InvalidSetting, match=name):
            await session.update_settings(**{name: value})
        if name in ("temperature", "max_tokens"):
            with pytest.raises(InvalidPatch, match=name):
                await session.apply("me", {"op": "options_set", name: value})
        await talk(session)

    run(body())


@pytest.mark.parametrize(("name", "value"), OUT_OF_RANGE)
def test_a_session_that_has_such_a_value_from_before_goes_on_with_it(name: str, value: Any) -> None:
    async def body() -> None:
        world = World()
        settings = Settings(**{name: value}, target=SMALL.name)
        await (await world.store.create(start_entry("s", 0.0, settings=settings))).close()
        async with await world.open("s") as session:
            assert getattr(session.settings, name) == getattr(settings, name)
            await session.update_settings(top_p=0.5)
            assert getattr(session.settings, name) == getattr(settings, name)

    run(body())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", "warm"), ("temperature", True), ("max_tokens", 2.5), ("reasoning", 5),
        ("schema", "object"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidSetting, match=name):
        Options(**{name: value})


def test_whatever_cannot_be_kept_is_refused_and_the_session_goes_on(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(tmp_path, settings=Settings(target=SMALL.name)) as session:
            await talk(session)
            entries, state = session.entries, session.state
            path = JsonlStore(tmp_path).path_of("s")
            data = path.read_bytes()
            attempts: list[Any] = [
                lambda: session.add_custom_entry("score", float("nan")),
                lambda: session.add_custom_entry("thing", object()),
                lambda: session.add_custom_entry("bytes", {"raw": b"abc"}),
                lambda: session.add_custom_entry(5),  # type: ignore[arg-type]
                lambda: session.apply("test", OptionsSet(max_tokens=2.5)),  # type: ignore[arg-type]
                lambda: session.set_system("mood", 5, reason="r"),  # type: ignore[arg-type]
            ]
            for attempt in attempts:
                with pytest.raises(LaminaError):
                    await attempt()
                assert (session.entries, session.state) == (entries, state)
                assert path.read_bytes() == data
            await talk(session, "Q2")
            entries = session.entries
        async with await on_disk(tmp_path) as again:
            assert again.damage == ()
            assert again.entries == entries

    run(body())


def test_a_new_session_that_cannot_be_kept_leaves_no_file(tmp_path: Path) -> None:
    async def body() -> None:
        store = JsonlStore(tmp_path)
        with pytest.raises(UsageError, match="Words"):
            await on_disk(tmp_path, system=[("persona", Words())], target=SMALL.name)
        tool: Any = ToolDefinition(name="look", description=cast(str, Words()))
        with pytest.raises(InvalidEntry, match="Words"):
            await on_disk(tmp_path, tools=[tool], target=SMALL.name)
        assert not await store.has("s")

    run(body())
    assert not list(tmp_path.rglob("*.jsonl"))


class Words:
    """Something that is no text."""


# -- what earlier versions wrote -------------------------------------------------------------------


def test_a_header_with_a_setting_that_cannot_be_read_loses_only_that(tmp_path: Path) -> None:
    async def body() -> None:
        async with await on_disk(
            tmp_path, system="S", settings=Settings(target=SMALL.name, window=5_000)
        ) as session:
            await talk(session, "Q1")
        path = JsonlStore(tmp_path).path_of("s")
        first, *rest = path.read_bytes().splitlines()
        settings = {
            "guide_search": "conservative", "strip_turns": 2.5, "target": SMALL.name,
            "window": 5_000,
        }  # fmt: skip
        path.write_bytes(b"\n".join([line_with(first, settings=settings), *rest, b""]))
        async with await on_disk(tmp_path) as again:
            assert [damage.kind for damage in again.damage] == ["lost_setting", "lost_setting"]
            assert again.settings == Settings(
                target=SMALL.name, window=5_000, guide_search=preset("conservative")
            )
            turn = await again.prepare("Q2")
            assert system_of(turn) == "S"
            assert any("guide_search='conservative'" in warning for warning in turn.warnings)
            assert any("strip_turns=2.5" in warning for warning in turn.warnings)
            assert turn.context.agreement.broke is None
            await turn.commit(openai_reply("A2"))
        journal = await JsonlStore(tmp_path).read("s")
        assert all(not check.problem for check in verify(journal, FakeBook()).checked)

    run(body())
