"""`open_qa`, `open_plan` and `open_agent` over a folder, through the public API."""

from pathlib import Path
from typing import Any

import pytest
from tests.fakes.providers import ProviderFake, ProvidersFake, calling, saying
from tests.fakes.tools import ApproverFake, ToolHostFake, of_host, tool
from tests.fakes.workspace import FakeWorkspace

import lamina
from lamina.adapters.workspace.file_actions.actions import WORKSPACE_PERSONA
from lamina.apps.wiring.file_tools import FILES_PART
from lamina.core.values.tool import ToolOutput
from lamina.errors import UsageError

pytestmark = pytest.mark.anyio
LOOKING = {"ls", "read", "grep", "getFileTree"}
CHANGING = {"write", "edit", "touch", "mv", "rm", "undo"}
SEARCH = {"localSearch"}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LAMINA_EMBED", "off")
    notes = tmp_path / "notes"
    (notes / "sea").mkdir(parents=True)
    (notes / "sea" / "log.md").write_text("The ferry Aurora sails at noon.\n", "utf-8")
    (notes / "trains.md").write_text("Trains leave from platform four.\n", "utf-8")
    return notes


def opening(folder: Path, provider: ProviderFake, **given: Any) -> dict[str, Any]:
    return {
        "workspace": folder, "target": "openai:gpt-4o", "store": lamina.JsonlStore(folder.parent),
        "providers": ProvidersFake(provider),
    } | given  # fmt: skip


def parts(runner: Any) -> list[str]:
    return [part.name for part in runner.session.envelope.system]


def offered(body: Any) -> set[str]:
    return set(of_host(each["function"]["name"] for each in body.get("tools", ())))


# -- answers from notes --------------------------------------------------------------------------


async def test_questions_are_answered_from_notes_with_their_sources(folder: Path) -> None:
    provider = ProviderFake(saying("At noon [^1]."))
    async with await lamina.open_qa(**opening(folder, provider)) as qa:
        answer = await qa.run("When does the ferry Aurora sail?")
        assert answer.text == "At noon [^1]."
        (source,) = answer.sources
        assert (source.number, source.path, source.start, source.end) == (1, "sea/log.md", 1, 1)
        assert offered(provider.bodies[0]) == set()
        assert FILES_PART not in parts(qa)


async def test_a_scope_is_for_all_questions_or_for_one(folder: Path) -> None:
    provider = ProviderFake()
    here = lamina.Scope(folders=("sea",))
    async with await lamina.open_qa(**opening(folder, provider), scope=here) as qa:
        question = "Where do the ferry Aurora and trains leave?"
        await qa.run(question)
        assert "Trains leave" not in str(provider.bodies[-1])
        await qa.run(question, scope=lamina.Scope())
        assert "Trains leave" in str(provider.bodies[-1])
        await qa.run(question)
        assert "Trains leave" not in str(provider.bodies[-1])


async def test_a_change_is_seen_by_the_next_question(folder: Path) -> None:
    provider = ProviderFake()
    async with await lamina.open_qa(**opening(folder, provider)) as qa:
        await qa.run("When does the ferry Aurora sail?")
        (folder / "sea" / "log.md").write_text("The ferry Aurora sails at dawn.\n", "utf-8")
        await qa.run("When does the ferry Aurora sail?")
        assert "sails at dawn" in str(provider.bodies[-1])
        assert "sails at noon" not in str(provider.bodies[-1])


async def test_notes_that_cannot_be_searched_are_refused_and_nothing_stays_open(
    folder: Path,
) -> None:
    given = opening(folder, ProviderFake(), workspace=FakeWorkspace({"a.md": "A"}))
    for wrong in ({}, {"workspace": folder, "top": 0}):
        with pytest.raises(UsageError) as caught:
            await lamina.open_qa("talk", **given | wrong)
        # While somebody holds the error, too; it would be busy if it were still open.
        assert caught.value
        session = await lamina.open_session("talk", store=given["store"], workspace=folder)
        await session.close()


# -- plans ---------------------------------------------------------------------------------------


async def test_a_plan_has_the_search_and_with_files_their_tools(folder: Path) -> None:
    for files, tools in ((False, SEARCH), (True, SEARCH | LOOKING | CHANGING)):
        provider = ProviderFake(calling(("a", "localSearch", {"query": "Aurora"})), saying("Noon."))
        async with await lamina.open_plan(**opening(folder, provider), files=files) as plan:
            answer = await plan.run("When does the Aurora sail?")
            assert answer.text.startswith("Noon.")
            assert [source.path for source in answer.sources] == ["sea/log.md"]
            assert offered(provider.bodies[0]) == tools
            assert (FILES_PART in parts(plan)) is files


async def test_a_plan_reads_freely_and_a_change_without_anybody_to_ask_is_denied(
    folder: Path,
) -> None:
    plan_of = calling(("a", "read", {"path": "trains.md"}), ("b", "rm", {"path": "trains.md"}))
    provider = ProviderFake(plan_of, saying("Done."))
    async with await lamina.open_plan(**opening(folder, provider), files=True) as plan:
        await plan.run("Tidy up.")
        assert "platform four" in str(provider.bodies[-1])
        assert (folder / "trains.md").exists()


# -- agents --------------------------------------------------------------------------------------


async def test_an_agent_has_the_files_only_if_that_is_said(folder: Path) -> None:
    for files, tools in ((False, set()), (True, SEARCH | LOOKING | CHANGING)):
        provider = ProviderFake()
        async with await lamina.open_agent(**opening(folder, provider), files=files) as agent:
            toolset = await agent.toolset()
            assert {tool.definition.name for tool in toolset.tools} == tools
            permissions = {tool.definition.name: tool.permission for tool in toolset.tools}
            assert {n for n, p in permissions.items() if p == "free"} == tools - CHANGING


async def test_reading_is_free_and_writing_asks(folder: Path) -> None:
    write = {"path": "new.md", "content": "New.\n"}
    provider = ProviderFake(
        calling(("a", "read", {"path": "trains.md"})),
        calling(("b", "write", write)),
        saying("Done."),
    )
    approver = ApproverFake("allow_once")
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, approver=approver
    ) as agent:
        answer = await agent.run("Write it.")
        assert answer.ending == "answered"
        assert approver.asked == ["b"]
        assert (folder / "new.md").read_text("utf-8") == "New.\n"


async def test_what_is_denied_does_not_happen(folder: Path) -> None:
    provider = ProviderFake(calling(("a", "rm", {"path": "trains.md"})), saying("No."))
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, approver=ApproverFake("deny")
    ) as agent:
        await agent.run("Remove it.")
        assert (folder / "trains.md").exists()


async def test_without_anybody_to_ask_the_turn_waits(folder: Path) -> None:
    provider = ProviderFake(calling(("a", "touch", {"path": "x.md"})), saying("Done."))
    async with await lamina.open_agent(**opening(folder, provider), files=True) as agent:
        answer = await agent.run("Make x.")
        assert answer.ending == "waiting"
        assert not (folder / "x.md").exists()
        await agent.decide("a", "allow_once")
        assert (await agent.resume()).ending == "answered"
        assert (folder / "x.md").exists()


async def test_what_was_removed_and_overwritten_comes_back(folder: Path) -> None:
    before = (folder / "trains.md").read_bytes()
    provider = ProviderFake(
        calling(("a", "read", {"path": "trains.md"})),
        calling(("b", "write", {"path": "trains.md", "content": "Other.\n"})),
        calling(("c", "rm", {"path": "trains.md"})),
        saying("Gone."),
        calling(("d", "undo", {})),
        calling(("e", "undo", {})),
        saying("Back."),
    )
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, approver=ApproverFake("allow_once")
    ) as agent:
        await agent.run("Remove it.")
        assert not (folder / "trains.md").exists()
        await agent.run("Undo.")
    assert (folder / "trains.md").read_bytes() == before


async def test_an_edit_of_what_changed_since_it_was_read_is_refused(folder: Path) -> None:
    def person(*_: Any) -> None:
        (folder / "trains.md").write_text("Trains leave from platform nine.\n", "utf-8")

    class Meddling(ApproverFake):
        async def decide(self, *given: Any) -> Any:
            person()
            return await super().decide(*given)

    edit = {"path": "trains.md", "old": "four", "new": "five"}
    provider = ProviderFake(
        calling(("a", "read", {"path": "trains.md"})), calling(("b", "edit", edit)), saying("No.")
    )
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, approver=Meddling("allow_once")
    ) as agent:
        await agent.run("Change it.")
    assert (folder / "trains.md").read_text("utf-8") == "Trains leave from platform nine.\n"


async def test_a_tool_stays_inside_the_folder_as_an_attachment_does(folder: Path) -> None:
    (folder.parent / "outside.md").write_text("The code is 1234.", "utf-8")
    provider = ProviderFake(
        calling(("a", "read", {"path": "../outside.md"})),
        calling(("b", "grep", {"pattern": "1234", "path": ".."})),
        saying("No."),
    )
    async with await lamina.open_agent(**opening(folder, provider), files=True) as agent:
        await agent.run("What is the code?", attach=["../outside.md"])
        assert "The code is" not in str(provider.bodies)


async def test_what_a_tool_changed_is_searched_and_attached_at_once(folder: Path) -> None:
    provider = ProviderFake(
        calling(("a", "localSearch", {"query": "zebra"})),
        calling(("b", "write", {"path": "z.md", "content": "A zebra crossing.\n"})),
        calling(("c", "localSearch", {"query": "zebra"})),
        saying("There."),
    )
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, approver=ApproverFake("allow_once")
    ) as agent:
        await agent.run("Where is the zebra?")
        assert "A zebra crossing." in str(provider.bodies[-1]["messages"][-1])
        found = await agent.session.preview_attachment("z")
        assert [attachment.item.id for attachment in found.attachments] == ["note:z.md"]


async def test_the_search_of_an_agent_stays_in_its_scope(folder: Path) -> None:
    provider = ProviderFake(
        calling(("a", "localSearch", {"query": "ferry trains leave", "folders": [""]})),
        saying("There."),
    )
    here = lamina.Scope(folders=("sea",))
    async with await lamina.open_agent(
        **opening(folder, provider), files=True, scope=here
    ) as agent:
        await agent.run("Where?")
        assert "Aurora" in str(provider.bodies[-1]["messages"][-1])
        assert "platform four" not in str(provider.bodies[-1]["messages"][-1])


# -- the web -------------------------------------------------------------------------------------

RESULTS = '{"results": [{"title": "Quays", "url": "https://q.example/", "snippet": "Ten."}]}'


async def test_the_web_is_searched_only_if_somebody_said_where(folder: Path) -> None:
    provider = ProviderFake(saying("Hello."))
    async with await lamina.open_agent(**opening(folder, provider), files=True) as agent:
        await agent.run("Hello?")
        assert "webSearch" not in offered(provider.bodies[-1])


async def test_a_server_s_tool_searches_the_web(folder: Path) -> None:
    call = calling(("a", "webSearch", {"query": "quays"}))
    host = ToolHostFake(tool("find"))
    host.outputs["find"] = ToolOutput(text=RESULTS)
    given: dict[str, Any] = {"tools": host, "approver": ApproverFake("allow_once")}
    provider = ProviderFake(call, saying("Ten [^1]."))
    where = "mcp:fake/find"
    async with await lamina.open_agent(
        **opening(folder, provider), **given, web_search=where
    ) as agent:
        answer = await agent.run("How many?")
        assert host.calls == [("find", {"query": "quays"})]
        assert [source.link for source in answer.sources] == ["https://q.example/"]
    for output, problem in (
        (ToolOutput(text="Ten."), "did not answer in the form"),
        (ToolOutput(text="down", is_error=True), "fake/find failed: down"),
    ):
        host.outputs["find"] = output
        provider = ProviderFake(call)
        async with await lamina.open_plan(
            **opening(folder, provider), **given, web_search=where
        ) as plan:
            await plan.run("How many?")
            assert problem in str(provider.bodies[-1])


async def test_where_the_web_cannot_be_searched_is_said_before_anything_is_opened(
    folder: Path,
) -> None:
    for where, problem in (
        ("search.example", "it is not a web address"),
        ("mcp:server", "write it as mcp:SERVER/TOOL"),
    ):
        with pytest.raises(UsageError, match=problem):
            await lamina.open_agent("new", **opening(folder, ProviderFake()), web_search=where)
    assert not await lamina.JsonlStore(folder.parent).has("new")


# -- the part of the system prompt ---------------------------------------------------------------


async def test_the_part_about_files_stands_once_and_moves_nothing_when_opened_again(
    folder: Path,
) -> None:
    provider = ProviderFake()
    given = opening(folder, provider, system="Be brief.", files=True)
    for _ in range(2):
        async with await lamina.open_agent("talk", **given) as agent:
            assert parts(agent).count(FILES_PART) == 1
            await agent.run("Hello?")
            (system, *_) = provider.bodies[-1]["messages"]
            assert str(system["content"]).count(WORKSPACE_PERSONA) == 1
    async with await lamina.open_agent("talk", **given) as agent:
        answer = await agent.run("And?")
        assert answer.turn is not None
        assert not [b for b in answer.turn.context.boundaries if b.kind == "system_change"]


async def test_the_part_about_files_goes_with_them(folder: Path) -> None:
    provider = ProviderFake()
    async with await lamina.open_agent("talk", **opening(folder, provider), files=True) as agent:
        await agent.run("Hello?")
    async with await lamina.open_agent("talk", **opening(folder, provider)) as agent:
        assert FILES_PART not in parts(agent)
        await agent.run("And?")
        assert WORKSPACE_PERSONA not in str(provider.bodies[-1])
    async with await lamina.open_agent("talk", **opening(folder, provider), files=True) as agent:
        assert FILES_PART in parts(agent)
    async with await lamina.open_qa("talk", **opening(folder, provider)) as qa:
        assert FILES_PART not in parts(qa)


async def test_a_turn_that_was_left_in_the_middle_keeps_the_part_about_files(folder: Path) -> None:
    provider = ProviderFake(calling(("a", "touch", {"path": "x.md"})))
    async with await lamina.open_agent("talk", **opening(folder, provider), files=True) as agent:
        assert (await agent.run("Make x.")).ending == "waiting"
    async with await lamina.open_agent("talk", **opening(folder, provider)) as agent:
        assert FILES_PART in parts(agent)
        assert [call.id for call in agent.session.pending_calls] == ["a"]


async def test_a_workspace_that_is_no_folder_has_no_files_and_nothing_stays_open(
    folder: Path,
) -> None:
    given = opening(folder, ProviderFake(), workspace=FakeWorkspace())
    for open_runner in (lamina.open_agent, lamina.open_plan):
        with pytest.raises(UsageError, match="the workspace is not a folder") as caught:
            await open_runner("talk", **given, files=True)
        assert caught.value
        session = await lamina.open_session("talk", store=given["store"], workspace=folder)
        await session.close()


async def test_a_folder_that_is_not_there_is_refused(folder: Path) -> None:
    for open_runner in (lamina.open_qa, lamina.open_plan, lamina.open_agent):
        with pytest.raises(UsageError, match="is not a folder"):
            await open_runner(**opening(folder / "none", ProviderFake()))


class NoApprover:
    """Has another method."""

    async def ask(self) -> None: ...


@pytest.mark.parametrize("approver", ["allow_once", 5, NoApprover(), ApproverFake, lambda: None])
@pytest.mark.parametrize("open_one", [lamina.open_agent, lamina.open_plan])
async def test_an_approver_of_another_kind_is_refused_and_no_session_begun(
    folder: Path, open_one: Any, approver: Any
) -> None:
    given = opening(folder, ProviderFake())
    with pytest.raises(UsageError, match=r"approver is .* an object with an async method 'decide'"):
        await open_one("talk", **given, approver=approver)
    assert not await given["store"].has("talk")


@pytest.mark.parametrize("summarizer", ["shorten", 5, NoApprover(), NoApprover])
async def test_a_summarizer_of_another_kind_is_refused_and_no_session_begun(
    folder: Path, summarizer: Any
) -> None:
    given = opening(folder, ProviderFake())
    del given["providers"]
    with pytest.raises(UsageError, match=r"summarizer is .* 'summarize' or a function"):
        await lamina.open_session("talk", **given, summarizer=summarizer)
    assert not await given["store"].has("talk")


@pytest.mark.parametrize("wrong", [{"priority": "high"}, {"priority": True}, {"shape": "round"}])
def test_what_an_attachment_is_worth_is_a_number(wrong: Any) -> None:
    with pytest.raises(UsageError, match=str(next(iter(wrong)))):
        lamina.attach("a.md", **wrong)
