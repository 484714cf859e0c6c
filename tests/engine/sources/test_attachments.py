"""What is attached to a question, in the request that comes of it and in the journal."""

import base64
import socket
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.workspace.test_folder import png
from tests.adapters.workspace.test_pdf_text import make_pdf
from tests.fakes.replies import openai_reply

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.workspace.folder import FolderWorkspace
from lamina.core.assembly import planner
from lamina.core.assembly.turn_items import TentativeTurn, compose
from lamina.core.audit.verification import verify
from lamina.core.values.item import Attachment, Item, ItemId, LoadedItem, note_id, url_id
from lamina.core.values.request import LeftOut
from lamina.core.values.web_access import FetchedResource, UnfetchedResource, WebRules
from lamina.engine.session.session import core_of
from lamina.engine.sources.attachments import AttachmentReader, Attachments
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio
TARGET = "openai:gpt-4o"
KEY = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


class WebFake:
    """Gives `pages` by their address, and keeps what it was asked for with which rules."""

    def __init__(self, pages: dict[str, str] | None = None) -> None:
        self.pages = dict(pages or {})
        self.asked: list[tuple[str, WebRules]] = []

    async def page(self, url: str, rules: WebRules) -> LoadedItem | LeftOut:
        self.asked.append((url, rules))
        if rules.access == "off":
            return LeftOut(what=url_id(url), reason="refused", detail=f"{url}: off")
        if url not in self.pages:
            return LeftOut(what=url_id(url), reason="missing", detail=f"{url}: 404")
        return LoadedItem(item=Item(id=url_id(url), content=self.pages[url]))

    async def picture(
        self, url: str, rules: WebRules, limit: int
    ) -> FetchedResource | UnfetchedResource:
        self.asked.append((url, rules))
        if rules.access == "off":
            return UnfetchedResource(reason="refused", detail="off")
        return FetchedResource(url=url, media_type="image/png", data=png(5))


class House:
    """A folder, and sessions over it whose journals are files."""

    def __init__(self, base: Path) -> None:
        self.folder = base / "notes"
        self.folder.mkdir()
        self.kept = base / "kept"
        self.store = lamina.JsonlStore(self.kept)
        self.web = WebFake()

    def put(self, path: str, text: str | bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    async def open(
        self, session: str | None = None, target: str = TARGET, **settings: Any
    ) -> lamina.Session:
        return await lamina.open_session(
            session, workspace=self.folder, store=self.store, web=self.web, target=target,
            settings=lamina.Settings(**settings) if settings else None,
        )  # fmt: skip

    @property
    def written(self) -> bytes:
        """Every byte that was kept."""
        return b"".join(path.read_bytes() for path in self.kept.rglob("*") if path.is_file())


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def ask(session: lamina.Session, text: str, *attach: Any) -> lamina.Turn:
    turn = await session.prepare(text, attach=attach)
    return await turn.commit(openai_reply("Yes.", input=turn.prompt.tokens, cached=0))


def ids(turn: lamina.Turn) -> list[str]:
    return [item.item for item in turn.context.items]


def worth(turn: lamina.Turn) -> dict[str, tuple[int, bool]]:
    return {item.item: (item.priority, item.essential) for item in turn.context.items}


# -- what comes along ----------------------------------------------------------------------------


async def test_the_same_note_by_path_and_by_name_is_one_item(house: House) -> None:
    house.put("deep/api.md", "---\naliases: [door]\n---\nThe interface.\n")
    async with await house.open() as session:
        turn = await ask(session, "What?", "deep/api.md", "api", "[[api]]", "door", "API")
        assert ids(turn) == ["note:deep/api.md"]
        assert str(turn.request()).count("The interface.") == 1
        turn = await ask(session, "And?", "door")
        assert [item.placement for item in turn.context.items] == ["above"]


async def test_a_note_that_comes_along_twice_is_sent_once(house: House) -> None:
    house.put("p/a.md", "The only one. #t\n")
    house.put("b.md", "![[a]]\n")
    async with await house.open() as session:
        turn = await ask(session, "What?", "p/", "#t", "b", "p/a.md")
        assert sorted(ids(turn)) == ["folder:p", "note:b.md", "note:p/a.md", "tag:t"]
        assert str(turn.request()).count("The only one.") == 1


@pytest.mark.parametrize("order", [1, -1])
async def test_what_is_attached_itself_is_worth_what_was_said_of_it(
    house: House, order: int
) -> None:
    house.put("p/a.md", "A")
    house.put("p/b.md", "B")
    wanted = [lamina.attach("p/", priority=10), lamina.attach("p/a.md", priority=3)]
    async with await house.open() as session:
        turn = await ask(session, "What?", *wanted[::order])
        assert worth(turn) == {
            "folder:p": (10, False),
            "note:p/a.md": (3, False),
            "note:p/b.md": (10, False),
        }
        (own,) = [item for item in turn.context.items if item.item == "note:p/a.md"]
        assert (own.origin, own.source) == ("", "")


async def test_what_comes_along_is_worth_what_brought_it_and_says_so(house: House) -> None:
    house.put("a.md", "![[b]]\n\n```lamina-query\nLIST FROM #t\n```\n")
    house.put("b.md", "B #t\n")
    async with await house.open() as session:
        turn = await ask(session, "What?", lamina.attach("a", essential=True))
        assert set(worth(turn).values()) == {(5, True)}
        brought = {item.origin: item.source for item in turn.context.items}
        assert brought == {"": "", "query": "note:a.md", "embed": "note:a.md"}


@pytest.mark.parametrize("order", [1, -1])
async def test_what_two_bring_is_worth_the_more_of_both(house: House, order: int) -> None:
    house.put("p/b.md", "B")
    house.put("a.md", "![[b]]\n")
    wanted = [lamina.attach("p/", priority=10), lamina.attach("a", essential=True, priority=3)]
    async with await house.open() as session:
        turn = await ask(session, "What?", *wanted[::order])
        assert worth(turn)["note:p/b.md"] == (3, True)


async def test_the_depth_of_embeds_is_a_setting(house: House) -> None:
    house.put("a.md", "![[b]]\n")
    house.put("b.md", "![[c]]\n")
    house.put("c.md", "C\n")
    for depth, count in ((0, 1), (1, 2), (2, 3)):
        async with await house.open(embed_depth=depth) as session:
            assert len(ids(await ask(session, "What?", "a"))) == count


async def test_what_is_missing_does_not_stop_the_rest_and_the_model_is_told(house: House) -> None:
    house.put("a.md", "![[gone]]\n")
    house.put("x.bin", b"\0\0")
    async with await house.open() as session:
        turn = await ask(session, "What?", "a", "nope", "x.bin", "#none", "../up.md")
        assert ids(turn) == ["note:a.md"]
        left = {omission.what: omission.reason for omission in turn.context.left_out}
        assert left == {
            "note:gone": "missing",
            "note:nope": "missing",
            "file:x.bin": "unreadable",
            "tag:none": "missing",
            "note:../up.md": "refused",
        }
        sent = str(turn.request())
        for name in ("gone", "nope", "x.bin", "#none", "../up.md"):
            assert name in sent


async def test_pictures_of_the_open_note_go_along_and_no_others(house: House) -> None:
    house.put("a.md", "![[x.png]] ![[b]]\n")
    house.put("b.md", "![[y.png]]\n")
    house.put("x.png", png(1))
    house.put("y.png", png(2))
    async with await house.open() as session:
        await session.prepare("What?", attach=[lamina.attach("a", shape="active")])
        with_pictures = [key for key, item in session.state.library.items.items() if item.pictures]
        assert [item for item, _ in with_pictures] == ["note:a.md"]


async def test_an_open_note_stays_open_if_it_is_attached_again(house: House) -> None:
    house.put("a.md", "![[x.png]]\n")
    house.put("x.png", png(1))
    wanted = [lamina.attach("a", shape="active"), lamina.attach("a.md", essential=True)]
    for order in (1, -1):
        async with await house.open() as session:
            found = await core_of(session).turns.read_attachments(wanted[::order])
            (attachment,) = found.attachments
            assert (attachment.shape, len(attachment.item.pictures)) == ("active", 1)
            assert attachment.essential is (order == 1)


async def test_a_note_that_comes_with_its_pictures_did_not_change(house: House) -> None:
    house.put("a.md", "![[x.png]]\n")
    house.put("x.png", png(1))
    async with await house.open() as session:
        await ask(session, "What?", "a.md")
        opened = lamina.attach("a.md", shape="active")
        turn = await ask(session, "And?", opened)
        assert str(turn.request()).count("image_url") == 2
        assert "Changed since it was last shown" not in str(turn.request())
        house.put("x.png", png(2))
        turn = await ask(session, "Now?", opened)
        assert str(turn.request()).count("Changed since it was last shown") == 1


async def test_attaching_takes_a_list(house: House) -> None:
    async with await house.open() as session:
        with pytest.raises(UsageError, match=r"attach=\['a.md'\]"):
            await session.prepare("What?", attach="a.md")


@pytest.mark.parametrize("said", ["old/a.md", "a", "[[a]]", "old/a"])
async def test_a_note_that_was_moved_is_found_by_what_it_was_called(
    house: House, said: str
) -> None:
    house.put("old/a.md", "Only here.\n")
    async with await house.open() as session:
        await ask(session, "What?", said)
        (house.folder / "old" / "a.md").rename(house.folder / "b.md")
        turn = await ask(session, "And?", said)
        assert ids(turn) == ["note:b.md"]
        (told,) = [warning for warning in turn.context.warnings if "is taken for it" in warning]
        assert told.endswith("is not there any more; b.md is taken for it")


LINES = "# Top\n\nOne.\n\n## Errors\n\nTwo.\n"


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    "said", ["a.md#L90", "a#L90-L99", "selection:a.md#L90-L99", "[[a#Nope]]", "a#Nope", "a.md#Nope"]
)
async def test_a_part_that_is_not_there_does_not_bring_the_whole_note(
    house: House, said: str, edited: bool
) -> None:
    house.put("a.md", LINES)
    house.put("copy.md", LINES if edited else "Another.\n")
    async with await house.open() as session:
        await ask(session, "What?", "a.md")
        if edited:
            house.put("a.md", f"{LINES}Three.\n")
        turn = await ask(session, "And?", said)
        assert ids(turn) == []
        (omission,) = turn.context.left_out
        assert omission.reason == "missing"
        assert "has no heading" in omission.detail or "is not there" in omission.detail
        assert not turn.context.warnings


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ("a.md#L3", "b.md#L3-L3"),
        ("a#L3-L5", "b.md#L3-L5"),
        ("[[a#Errors]]", "b.md#L5-L7"),
        ("a#Errors", "b.md#L5-L7"),
    ],
)
async def test_a_part_of_a_note_that_was_moved_is_the_same_part_of_it(
    house: House, said: str, lines: str
) -> None:
    house.put("a.md", LINES)
    async with await house.open() as session:
        await ask(session, "What?", "a.md")
        (house.folder / "a.md").rename(house.folder / "b.md")
        turn = await ask(session, "And?", said)
        assert ids(turn) == [f"selection:{lines}"]
        assert "b.md is taken for it" in turn.context.warnings[0]


@pytest.mark.parametrize("model", ["gpt-3.5-turbo", "gpt-4", "o3-mini", "gpt-4o"])
@pytest.mark.parametrize("promotion", ["lazy", "eager"])
async def test_a_picture_is_only_sent_to_a_model_that_can_see(
    house: House, model: str, promotion: Any
) -> None:
    house.put("a.md", "Look: ![[x.png]]\n")
    house.put("x.png", png(1))
    house.put("y.png", png(2))
    target = f"openai:{model}"
    sees = model == "gpt-4o"
    async with await house.open("s", target, promotion=promotion) as session:
        turn = await ask(session, "What?", lamina.attach("a.md", shape="active"), "y.png")
        body = str(turn.request())
        assert body.count("image_url") == 4 * sees
        assert body.count("[An image, which this model cannot see.]") == 2 * (not sees)
        unseen = (
            f"not sent: 1 picture of a.md, as {target} cannot see pictures",
            f"not sent: y.png, as {target} cannot see pictures",
        )
        assert turn.context.warnings == (() if sees else unseen)
        # A picture that is not sent costs no more than the words for it.
        tokens = sum(item.tokens for item in turn.context.items)
        assert (tokens > 200) == sees
        again = await ask(session, "And?")
        assert again.context.agreement.broke is None or promotion == "eager"
    assert verify(await house.store.read("s"), load_book()).sound


async def test_a_note_that_is_gone_is_not_taken_for_another(house: House) -> None:
    house.put("a.md", "A.\n")
    house.put("b.md", "B.\n")
    async with await house.open() as session:
        await ask(session, "What?", "a", "b")
        (house.folder / "a.md").unlink()
        turn = await ask(session, "And?", "a", "c")
        assert ids(turn) == []
        assert [omission.what for omission in turn.context.left_out] == ["note:a", "note:c"]


# -- another workspace ---------------------------------------------------------------------------


@pytest.fixture
async def stranger(tmp_path: Path) -> Item:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "code.md").write_text("The code is 1234.", "utf-8")
    found = await FolderWorkspace(tmp_path / "other").read("code.md", "attached")
    assert isinstance(found, LoadedItem)
    return found.item


@pytest.mark.parametrize("form", ["item", "wanted", "attachment"])
async def test_an_item_of_another_workspace_is_refused_in_every_form(
    house: House, stranger: Item, form: str
) -> None:
    given: Any = stranger
    if form == "wanted":
        given = lamina.attach(stranger)
    elif form == "attachment":
        given = Attachment(item=stranger)
    async with await house.open() as session:
        turn = await ask(session, "What is the code?", given)
        (left,) = turn.context.left_out
        assert (left.what, left.reason) == ("note:code.md", "refused")
        assert "another workspace" in left.detail
        assert "1234" not in str(turn.request())
        with pytest.raises(UsageError, match="another workspace"):
            await session.pin(given)
        (left,) = await session.preload([given])
        assert left.reason == "refused"
    assert b"1234" not in house.written


async def test_an_item_of_this_workspace_or_of_none_is_taken(house: House) -> None:
    house.put("a.md", "From here.")
    own = Item(id=note_id("b.md"), content="From nowhere.")
    async with await house.open() as session:
        found = await session.workspace.read("a.md", "attached")
        assert isinstance(found, LoadedItem)
        turn = await ask(session, "What?", found.item, own)
        assert ids(turn) == ["note:a.md", "note:b.md"]
        # The journal belongs to one workspace; its name is not repeated in every item.
        assert all(not item.workspace for item in session.state.library.items.values())


# -- secrets -------------------------------------------------------------------------------------


async def test_a_secret_is_replaced_before_the_model_or_the_journal_sees_it(house: House) -> None:
    house.put("p/a.md", f"token = {KEY}\n")
    house.put("b.md", '![[c]]\n\n```lamina-query\nTABLE token FROM ""\n```\n')
    house.put("c.md", f"---\ntoken: {KEY}\n---\n")
    house.put("d.txt", f"one\n{KEY}\n")
    async with await house.open() as session:
        turn = await ask(session, "What?", "p/", "b", "d.txt#L2", "d.txt")
        assert KEY not in str(turn.request())
        assert "[redacted: GitHub token]" in str(turn.request())
        told = "\n".join(turn.context.warnings)
        assert "p/a.md: " in told
        assert "replaced before it is sent" in told
        assert KEY not in told
        await session.pin("d.txt")
        turn = await ask(session, "And?")
        assert KEY not in str(turn.request())
    assert KEY.encode() not in house.written
    assert b"[redacted: GitHub token]" in house.written


async def test_a_secret_in_an_item_that_is_given_is_replaced_as_well(house: House) -> None:
    item = Item(id=note_id("a.md"), content=f"token = {KEY}")
    async with await house.open() as session:
        await ask(session, "What?", item)
        await ask(session, "What?", Attachment(item=Item(id=ItemId("note:b.md"), content=KEY)))
        await session.pin(item)
        await session.preload([item])
    assert KEY.encode() not in house.written


@pytest.mark.parametrize(
    "text",
    [
        f"![[{KEY}]]",
        f"![[b#{KEY}]]",
        f"```lamina-query\nLIST {KEY} {KEY}\n```",
        f'```lamina-query\nLIST WHERE x = "{KEY}"\n```',
        f"#{KEY}",
    ],
)
async def test_a_secret_does_not_pass_in_what_is_told_of_a_note(house: House, text: str) -> None:
    house.put("a.md", f"{text}\n")
    house.put("b.md", "B")
    async with await house.open() as session:
        turn = await ask(session, "What?", "a")
        assert KEY not in str(turn.request())
    assert KEY.encode() not in house.written


async def test_a_secret_does_not_pass_in_a_title(house: House) -> None:
    house.put("x.pdf", make_pdf("Hello", title=f"My {KEY}"))
    async with await house.open() as session:
        for question in ("1", "2"):
            turn = await ask(session, question, "x.pdf")
            assert KEY not in str(turn.request())
    assert KEY.encode() not in house.written


async def test_secrets_are_only_told_if_that_is_wanted(house: House) -> None:
    house.put("a.md", f"token = {KEY}\n")
    async with await house.open(secrets="warn") as session:
        turn = await ask(session, "What?", "a")
        assert KEY in str(turn.request())
        (told,) = turn.context.warnings
        assert told.endswith("sent as it stands")
        assert KEY not in told


async def test_secrets_are_left_alone_if_that_is_wanted(house: House) -> None:
    house.put("a.md", f"token = {KEY}\n")
    async with await house.open(secrets="off") as session:
        turn = await ask(session, f"What is {KEY}?", "a")
        assert KEY in str(turn.request())
        assert turn.context.warnings == ()


async def test_a_secret_is_told_once_for_a_version(house: House) -> None:
    house.put("a.md", f"token = {KEY}\n")
    async with await house.open() as session:
        assert len((await ask(session, "1", "a")).context.warnings) == 1
        assert (await ask(session, "2", "a")).context.warnings == ()
        house.put("a.md", f"the token = {KEY}\n")
        turn = await ask(session, "3", "a")
        assert len([warning for warning in turn.context.warnings if "secret" in warning]) == 1


async def test_a_redacted_note_is_not_taken_for_changed(house: House) -> None:
    house.put("a.md", f"token = {KEY}\n")
    async with await house.open("s") as session:
        await ask(session, "1", "a")
        assert await session.find_changes() == ()
        turn = await ask(session, "2", "a")
        assert [item.placement for item in turn.context.items] == ["above"]
    async with await house.open("s") as session:
        turn = await ask(session, "3")
        assert not [warning for warning in turn.context.warnings if "since it was shown" in warning]


async def test_a_secret_that_is_typed_is_sent_and_told(house: House) -> None:
    async with await house.open() as session:
        turn = await ask(session, f"Is {KEY} mine?")
        assert KEY in str(turn.request())
        (told,) = turn.context.warnings
        assert told.startswith("the message: ")
        assert told.endswith("sent as it was typed")
        assert KEY not in told


async def test_hidden_characters_are_sent_and_told_once_with_their_line(house: House) -> None:
    house.put("a.md", "one\ntwo\u202e\u200bthree\n")
    async with await house.open() as session:
        turn = await ask(session, "1", "a")
        (told,) = turn.context.warnings
        assert told.startswith("a.md: hidden characters: ")
        assert "first on line 2" in told
        assert any("two\u202e\u200bthree" in segment.text for segment in turn.prompt)
        assert (await ask(session, "2", "a")).context.warnings == ()


# -- the web -------------------------------------------------------------------------------------


async def test_no_page_is_fetched_while_the_web_is_off(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: asked.append(given))
    monkeypatch.setattr(socket.socket, "connect", lambda *given: asked.append(given))
    async with await lamina.open_session(
        workspace=house.folder, store=house.store, target=TARGET
    ) as session:
        turn = await ask(session, "What?", "https://example.org/a")
        (left,) = turn.context.left_out
        assert (left.what, left.reason) == ("url:https://example.org/a", "refused")
        assert "the setting `web`" in left.detail
        assert "https://example.org/a" in str(turn.request())
    assert asked == []


async def test_a_password_in_an_address_is_not_kept(house: House) -> None:
    async with await lamina.open_session(
        workspace=house.folder, store=house.store, target=TARGET
    ) as session:
        turn = await ask(session, "What?", "https://me:hunter2@example.org/a")
        assert [omission.what for omission in turn.context.left_out] == [
            "url:https://example.org/a"
        ]
        assert "hunter2" not in str(turn.request())
    assert b"hunter2" not in house.written


async def test_a_page_is_fetched_with_the_rules_of_the_settings(house: House) -> None:
    house.web.pages["https://example.org/a?b=1"] = f"A page. {KEY}"
    async with await house.open(web="listed", allow_hosts=("example.org",)) as session:
        turn = await ask(session, "What?", "HTTPS://Example.org/a?b=1#part", "url:example.org/no")
        assert ids(turn) == ["url:https://example.org/a?b=1"]
        assert "A page. [redacted: GitHub token]" in str(turn.request())
        assert [omission.what for omission in turn.context.left_out] == [
            "url:https://example.org/no"
        ]
    expected = WebRules(access="listed", allow_hosts=("example.org",))
    assert house.web.asked == [
        ("https://example.org/a?b=1", expected),
        ("https://example.org/no", expected),
    ]


async def test_pictures_of_pages_in_the_open_note_follow_the_same_rules(house: House) -> None:
    house.put("a.md", "![](https://example.org/x.png)\n")
    active = lamina.attach("a", shape="active")
    async with await house.open() as session:
        turn = await ask(session, "What?", active)
        assert not any(item.pictures for item in session.state.library.items.values())
        assert any("x.png" in warning for warning in turn.context.warnings)
    async with await house.open(web="public") as session:
        await ask(session, "What?", active)
        assert any(item.pictures for item in session.state.library.items.values())
    assert [rules.access for _, rules in house.web.asked] == ["off", "public"]


async def test_without_anything_to_fetch_with_pages_are_refused(house: House) -> None:
    reader = AttachmentReader(FolderWorkspace(house.folder), house.store)
    async with await house.open(web="public") as session:
        found: Attachments = await reader.read_all(["https://example.org/"], session.state)
        assert found.attachments == ()
        assert [omission.reason for omission in found.left_out] == ["refused"]


# -- what does not fit ---------------------------------------------------------------------------


async def test_the_model_is_told_in_one_line_of_a_folder_that_does_not_fit(house: House) -> None:
    for number in range(300):
        house.put(f"p/{number:03}.md", f"Note {number}. " + "word " * 200)
    async with await house.open(window=16_000) as session:
        turn = await session.prepare("What?", attach=["p/"])
        out = [omission for omission in turn.context.left_out if omission.reason == "window"]
        shown = [item for item in turn.context.items if item.placement != "left_out"]
        assert len(out) + len(shown) == 301
        assert {omission.source for omission in out if omission.what.startswith("note:")} == {
            "folder:p"
        }
        sent = [segment.text for segment in turn.prompt]
        lines = [line for text in sent for line in text.split("\n") if "no room left" in line]
        (line,) = lines
        assert f"{len([e for e in out if e.what.startswith('note:')])} more of p" in line
        assert turn.prompt.tokens <= 16_000


async def test_a_few_that_do_not_fit_are_named_one_by_one(house: House) -> None:
    for number in range(3):
        house.put(f"p/{number}.md", "word " * 20_000)
    async with await house.open(window=16_000) as session:
        turn = await session.prepare("What?", attach=["p/"])
        sent = "\n".join(segment.text for segment in turn.prompt)
        for number in range(3):
            assert f"- p/{number}.md (no room left)" in sent
        assert "more of" not in sent


async def test_a_folder_that_does_not_fit_is_laid_out_a_few_times_only(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def counted(*given: Any) -> TentativeTurn:
        nonlocal calls
        calls += 1
        return compose(*given)

    monkeypatch.setattr(planner, "compose", counted)
    for number in range(300):
        house.put(f"p/{number:03}.md", f"Note {number}. " + "word " * 200)
    async with await house.open(window=16_000) as session:
        await session.prepare("What?", attach=["p/"])
    assert 0 < calls <= 5


# -- pictures that a note holds itself, and those that are not shown ------------------------------


def pasted(data: bytes) -> str:
    return f"![a chart](data:image/png;base64,{base64.b64encode(data).decode()})"


async def test_a_pasted_picture_is_an_image_of_the_open_note_and_words_in_its_text(
    house: House,
) -> None:
    picture = png(1) + bytes(300_000)
    house.put("a.md", f"Before.\n\n{pasted(picture)}\n\nAfter.\n")
    async with await house.open() as session:
        turn = await session.prepare("What?", attach=[lamina.attach("a", shape="active")])
        (item,) = session.state.library.items.values()
        assert item.content == "Before.\n\n[Picture: a chart (PNG, 300 kB)]\n\nAfter.\n"
        assert [seen.media_type for seen in item.pictures] == ["image/png"]
        assert "not shown" not in str(turn.request())
        assert turn.context.fit.tokens < 5_000


async def test_a_note_that_is_not_the_open_one_says_that_it_has_pictures(house: House) -> None:
    house.put("a.md", f"{pasted(png(1) + bytes(300_000))} ![[x.png]] <img src='gone.png'>\n")
    house.put("b.md", "![[x.png]]\n")
    house.put("x.png", png(2))
    async with await house.open() as session:
        turn = await session.prepare("What?", attach=["a.md", "b.md"])
        request = str(turn.request())
        assert "(3 pictures are not shown.)" in request
        assert "(1 picture is not shown.)" in request
        assert not any(item.pictures for item in session.state.library.items.values())
        assert turn.context.left_out == ()
        assert turn.context.fit.tokens < 5_000


@pytest.mark.parametrize("promotion", ["lazy", "eager"])
async def test_a_note_with_pictures_is_promoted_without_them_and_verifies(
    house: House, promotion: str
) -> None:
    house.put("b.md", f"Text. {pasted(png(1) + bytes(400))}\n")
    async with await house.open("s", promotion=promotion) as session:
        turn = await session.prepare("One?", attach=["b.md"])
        await turn.commit(openai_reply("Yes."))
        if promotion == "lazy":
            await session.rebuild_library("to see where it goes")
        turn = await session.prepare("Two?", attach=["b.md"])
        system = turn.request()["messages"][0]["content"]
        assert "Text. [Picture: a chart (PNG, " in system
        assert "(1 picture is not shown.)" in system
        await turn.commit(openai_reply("Again."))
    assert verify(await house.store.read("s"), load_book()).sound


async def test_a_note_that_was_open_is_not_sent_again_because_it_is_not(house: House) -> None:
    house.put("a.md", f"Text. {pasted(png(1) + bytes(400))}\n")
    async with await house.open() as session:
        turn = await session.prepare("One?", attach=[lamina.attach("a", shape="active")])
        await turn.commit(openai_reply("Yes."))
        turn = await session.prepare("Two?", attach=["a.md"])
        assert [item.placement for item in turn.context.items] == ["above"]


async def test_lines_and_sections_of_a_note_have_words_for_its_pictures(house: House) -> None:
    house.put("a.md", f"# One\n\n{pasted(png(1) + bytes(400))} ![[x.png]]\n\n# Two\n")
    async with await house.open() as session:
        turn = await session.prepare("One?", attach=["a.md#L1-L3", "[[a#Two]]"])
        request = str(turn.request())
        assert "[Picture: a chart (PNG, " in request
        assert "base64" not in request
        assert request.count("(1 picture is not shown.)") == 1
