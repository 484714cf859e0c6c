"""A chat about a folder of notes: what can be attached and searched, what is open, what changed,
and what is remembered."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.workspace.test_folder import png
from tests.apps.cli.chats import Act, SourceFake, Talk, answer, opened, talk
from tests.apps.cli.inside import error
from tests.fakes.providers import ProviderFake, ProvidersFake

from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.apps.cli.chat.startup import read_attached
from lamina.apps.views.mentions import find_mentions
from lamina.apps.views.session_options import PromptOptions
from lamina.apps.wiring.folders import open_folder
from lamina.engine.runners.qa import QaRunner
from lamina.errors import UsageError

KEY = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


@pytest.fixture
def vault(notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("LAMINA_MEMORY", str(tmp_path / "memory.md"))
    files: dict[str, str | bytes] = {
        "sea/harbour.md": "# Berths\n\nThe north quay has nine berths.\n\n# Fees\n\nTen a day.\n",
        "sea/log.md": "The ferry sails at noon. #ferry\n",
        "map.md": "The map: ![[map.png]]\n",
        "map.png": png(3, 2),
        "my note.md": "Spaces. ![[sea/log]]\n",
    }
    for path, content in files.items():
        (notes / path).parent.mkdir(exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        (notes / path).write_bytes(data)
    return notes


def said(talked: Talk) -> list[str]:
    """What the chat told, without its greeting and costs."""
    lines = talked.err.splitlines()[1:]
    return [line for line in lines if not line.startswith(("prompt ", "cache: "))]


def sent(talked: Talk) -> list[str]:
    last = talked.session.state.requests.sent
    assert last is not None
    return [item.item for item in last.context.items]


# -- /attach -------------------------------------------------------------------------------------


def test_a_folder_is_attached_until_it_is_taken_away(vault: Path) -> None:
    talked = talk(
        vault, "/attach sea/", "What?", "/attach", "/detach sea/", "And?",
        replies=[answer("1."), answer("2.")],
    )  # fmt: skip
    assert said(talked) == [
        "attached sea/ (2 more items, 123 characters in all) until /detach",
        "attached: sea/",
        "sea/ is no longer attached; what was sent of it stays in history",
    ]
    assert sent(talked) == []


@pytest.mark.parametrize(
    ("reference", "item"),
    [
        ("#ferry", "tag:ferry"),
        ("harbour", "note:sea/harbour.md"),
        ("[[harbour#Fees]]", "selection:sea/harbour.md#L5-L7"),
        ("sea/harbour.md#L1-L3", "selection:sea/harbour.md#L1-L3"),
        ('"my note"', "note:my note.md"),
        ("map.png", "image:map.png"),
    ],
)
def test_every_reference_can_be_attached_and_mentioned(
    vault: Path, reference: str, item: str
) -> None:
    talked = talk(vault, f"/attach {reference}", "What?", replies=[answer("1.")])
    assert item in sent(talked)
    talked = talk(vault, f"What is in @{reference}?", replies=[answer("1.")])
    assert item in sent(talked)
    assert not any("sent as text" in line for line in said(talked))


def test_what_cannot_be_attached_is_said_and_the_rest_is(vault: Path) -> None:
    talked = talk(vault, "/attach gone #none ../x.md harbour", "/attach")
    assert said(talked) == [
        "error: not attached: gone does not exist in the workspace",
        "error: not attached: no note has the tag #none",
        "error: not attached: '../x.md' is not a path inside the workspace",
        "attached harbour (62 characters) until /detach",
        "attached: harbour",
    ]
    assert talked.code == 1


def test_what_a_note_brings_is_said_when_it_is_attached(vault: Path) -> None:
    (talked,) = said(talk(vault, '/attach --essential "my note"'))
    assert talked == (
        "attached my note (1 more item, 53 characters in all, essential) until /detach"
    )


def test_warnings_are_given_with_the_attachment(vault: Path) -> None:
    (vault / "key.md").write_text(f"token = {KEY}\n", "utf-8")
    talked = talk(vault, "/attach key", "What?", replies=[answer("1.")])
    assert any("replaced before it is sent" in line for line in said(talked))
    assert KEY not in talked.err


def test_a_page_is_not_attached_while_the_web_is_off(vault: Path) -> None:
    talked = talk(
        vault, "/attach https://example.org/x", "See @https://example.org/x.",
        replies=[answer("1.")],
    )  # fmt: skip
    assert said(talked) == [
        "error: not attached: https://example.org/x: pages are fetched only if the setting `web` "
        "allows it",
        "! left out: https://example.org/x: pages are fetched only if the setting `web` allows it",
    ]


def test_the_same_note_by_two_names_is_sent_once(vault: Path) -> None:
    provider = ProviderFake(answer("1."))
    talk(vault, "/attach harbour", "What says @sea/harbour.md?", provider=provider)
    assert str(provider.bodies[0]).count("nine berths") == 1


# -- /active -------------------------------------------------------------------------------------


def test_the_open_note_brings_its_pictures_until_another_is_open(vault: Path) -> None:
    talked = talk(
        vault, "/active", "/active map", "/active", "What?", "/active none", "/active",
        replies=[answer("1.")],
    )  # fmt: skip
    assert said(talked) == [
        "no note is open; /active NOTE",
        "map is open (22 characters, 1 picture), until /active none",
        "open: map",
        "! not sent: 1 picture of map.md, as local:smollm2-135m cannot see pictures",
        "no note is open now",
        "no note is open; /active NOTE",
    ]
    shown = [item for item in talked.session.state.library.items.values() if item.pictures]
    assert [item.id for item in shown] == ["note:map.md"]


def test_a_note_that_cannot_be_opened_leaves_the_one_that_is(vault: Path) -> None:
    talked = talk(vault, "/active map", "/active gone", "/active", "/active a b")
    assert said(talked)[1:] == [
        "error: gone does not exist in the workspace",
        "open: map",
        "error: usage: /active [NOTE|none]",
    ]


def test_the_open_note_goes_first_and_once(vault: Path) -> None:
    talked = talk(
        vault, "/active map", "/attach harbour", "What says @map.md?", replies=[answer("1.")]
    )
    assert sent(talked) == ["note:map.md", "note:sea/harbour.md"]
    assert [item.id for item in talked.session.state.library.items.values() if item.pictures]


# -- /search -------------------------------------------------------------------------------------


def test_a_search_shows_places_that_can_be_attached(vault: Path) -> None:
    talked = talk(vault, "/search north quay berths", "/search zebra")
    assert talked.out == (
        "words  sea/harbour.md#L1-L3  ·  Berths\n"
        "       # Berths The north quay has nine berths.\n"
        "no match in 5 notes\n"
    )
    assert "notes are searched by their words alone" in talked.err


def test_a_search_wants_something_to_look_for(vault: Path) -> None:
    assert said(talk(vault, "/search")) == ["error: usage: /search QUERY"]


# -- /refresh ------------------------------------------------------------------------------------


def test_a_refresh_says_what_changed_and_the_model_sees_it(vault: Path) -> None:
    provider = ProviderFake(answer("1."), answer("2."))

    def change() -> None:
        (vault / "sea" / "harbour.md").write_text("The quay is closed.\n", "utf-8")
        (vault / "sea" / "log.md").unlink()

    talked = talk(
        vault, "What of @sea/harbour.md and @sea/log.md?", "/refresh", change, "/refresh", "And?",
        provider=provider,
    )  # fmt: skip
    assert said(talked) == [
        "nothing changed",
        "sea/harbour.md was edited since it was shown",
        "sea/log.md was deleted since it was shown",
        "the model sees it with the next message",
    ]
    assert "The quay is closed." in str(provider.bodies[-1])


def test_a_refresh_takes_nothing_behind_it(vault: Path) -> None:
    assert said(talk(vault, "/refresh all")) == ["error: /refresh accepts no arguments"]


# -- /remember -----------------------------------------------------------------------------------


def test_what_is_remembered_is_kept_for_every_session(vault: Path, tmp_path: Path) -> None:
    talked = talk(
        vault, "/remember", "/remember I drink tea.", "/remember I drink tea.", "/remember"
    )
    assert said(talked) == [
        "no memories yet; /remember TEXT adds one",
        "remembered from the next message on; manage memories with `lamina memory`",
        "already remembered; manage memories with `lamina memory`",
        "  1  I drink tea.",
    ]
    assert (tmp_path / "memory.md").read_text("utf-8") == "- I drink tea.\n"


# -- mentions ------------------------------------------------------------------------------------


def test_the_composer_is_no_file_that_is_missing(vault: Path) -> None:
    provider = ProviderFake(answer("1."))
    talked = talk(vault, "@composer shorten @harbour, please.", provider=provider)
    assert said(talked) == []
    assert "Never invent a path" in str(provider.bodies[0])


@pytest.mark.parametrize(
    ("text", "paths", "unknown"),
    [
        ("See @harbour.", ("harbour",), ()),
        ("See @sea/, and @#ferry!", ("sea/", "#ferry"), ()),
        ("See @[[harbour#Fees]].", ("[[harbour#Fees]]",), ()),
        ("(@sea/harbour.md#L1-L3)", ("sea/harbour.md#L1-L3",), ()),
        ("See @[[harbour]], @[[my note|it]]!", ("[[harbour]]", "[[my note|it]]"), ()),
        ("See @[[no such note]].", ("[[no such note]]",), ()),
        ('See @"my note", @"my note".', ("my note",), ()),
        ("See @https://example.org/a.", ("https://example.org/a",), ()),
        ("Ask @bob and me@example.org.", (), ("bob",)),
        ("See @gone.md and @#none.", ("gone.md",), ("#none",)),
    ],
)
def test_mentions_name_what_they_say(
    vault: Path, text: str, paths: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    async def body() -> Any:
        return await find_mentions(text, FolderWorkspace(vault, watch=False), vault)

    found = anyio.run(body)
    assert (found.paths, found.unknown) == (paths, unknown)


# -- answers from notes --------------------------------------------------------------------------


def ask_notes(vault: Path, *acts: Act, replies: Sequence[Any]) -> Talk:
    """A chat that answers from notes."""

    async def body() -> Talk:
        async with opened(vault, SourceFake(*acts), ProviderFake()) as talked:
            session = talked.session
            assert session.searcher is not None
            runner = QaRunner(session, ProvidersFake(ProviderFake(*replies)), session.searcher)
            talked.chat.runner = runner
            talked.code = await talked.chat.talk()
            return talked

    return anyio.run(body)


def test_an_answer_from_notes_is_shown_with_its_sources(vault: Path) -> None:
    talked = ask_notes(
        vault, "How many berths has the north quay?", replies=[answer("Nine [^1].\n")]
    )
    assert talked.out == "Nine [^1].\n\n[^1]: [[sea/harbour.md#Berths]]\n"


# -- how a chat begins ---------------------------------------------------------------------------


def test_what_is_attached_from_the_beginning_must_be_there(vault: Path) -> None:
    async def read(**given: Any) -> dict[str, bool]:
        workspace = open_folder(vault)
        try:
            return (await read_attached(PromptOptions(**given), vault, workspace))[0]
        finally:
            await workspace.aclose()

    async def body() -> None:
        given = {"attach": ("sea/", "#ferry", "https://example.org/"), "essential": ("harbour",)}
        assert await read(**given, active="map") == {
            "sea/": False, "#ferry": False, "https://example.org/": False, "harbour": True,
        }  # fmt: skip
        assert await read(attach=(str(vault / "sea" / "log.md"),)) == {"sea/log.md": False}
        for wrong in ({"attach": ("gone",)}, {"active": "gone"}):
            with pytest.raises(UsageError, match="cannot attach: gone does not exist"):
                await read(**wrong)

    anyio.run(body)


def test_the_open_note_can_be_named_from_the_root_of_the_machine(vault: Path) -> None:
    # Nobody answers here; it gets as far as that.
    said = error(
        "chat", "--active", str(vault / "map.md"), "-m", "openai:gpt-4o", "-w", str(vault),
        "--in", "sea", cwd=vault,
    )  # fmt: skip
    assert "cannot attach" not in said
    assert "--in, --since and --until" in said


@pytest.mark.parametrize("command", ["chat", "rpc", "ask"])
def test_no_command_takes_files_with_answers_from_notes(vault: Path, command: str) -> None:
    question = ["Why?"] if command == "ask" else []
    said = error(command, *question, "--mode", "qa", "--files", cwd=vault, code=2)
    assert "--files needs --mode agent or plan" in said
