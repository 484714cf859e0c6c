"""`lamina ask` whole, over a model that plays scripts: answers from notes, planned tools, files,
memory and pages."""

import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.pages.local_server import answer, serving
from tests.apps.cli.inside import error, lamina
from tests.fakes.providers import ProviderFake, ProvidersFake, Step, calling, saying

from lamina.apps.cli.flags import SessionFlags
from lamina.apps.views.session_options import SettingChanges
from lamina.apps.wiring import default_store

NOTES = {
    "sea/harbour.md": "# Berths\n\nThe north quay has nine berths for ferries.\n",
    "sea/log.md": "The ferry Aurora sails at noon. #ferry\n",
    "land/trains.md": "Trains leave from platform four.\n",
}
KEY = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"


class ClientsFake(ProvidersFake):
    """What stands in for the clients of vendors."""

    async def aclose(self) -> None: ...


class Shell:
    """A person's shell in a folder of notes, with a model that plays scripts."""

    def __init__(self, folder: Path, provider: ProviderFake) -> None:
        self.folder = folder
        self._provider = provider

    def script(self, *scripts: Iterable[Step]) -> None:
        self._provider.scripts += scripts

    def ask(self, *arguments: str, code: int = 0) -> str:
        """What `lamina ask` prints; what it says besides is in `err`."""
        got, out, self.err = lamina("ask", *arguments, cwd=self.folder)
        assert got == code, self.err
        return out

    def ask_json(self, *arguments: str) -> Any:
        return json.loads(self.ask("--json", *arguments))

    @property
    def bodies(self) -> list[Any]:
        return list(self._provider.bodies)

    @property
    def asked(self) -> str:
        """The last message that the model got."""
        return str(self.bodies[-1]["messages"][-1]["content"])

    def tools(self, at: int = -1) -> list[str]:
        return [each["function"]["name"] for each in self.bodies[at].get("tools", ())]


@pytest.fixture
def shell(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    provider = ProviderFake()
    monkeypatch.setattr(
        "lamina.apps.views.session_opener.Clients", lambda **_: ClientsFake(provider)
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setenv("LAMINA_TARGET", "openai:gpt-4o")
    monkeypatch.setenv("LAMINA_EMBED", "off")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for path, text in NOTES.items():
        (notes / path).parent.mkdir(exist_ok=True)
        (notes / path).write_text(text, "utf-8")
    return Shell(notes, provider)


# -- answers from notes --------------------------------------------------------------------------


def test_an_answer_stands_with_its_footnotes_on_standard_output(shell: Shell) -> None:
    shell.script(saying("There are nine berths [^1], said twice [^1]."))
    assert shell.ask("--mode", "qa", "How many berths has the north quay?") == (
        "There are nine berths [^1], said twice [^1].\n\n[^1]: [[sea/harbour.md#Berths]]\n"
    )
    assert "nine berths" not in shell.err
    assert shell.err.startswith("session ")
    assert "The north quay has nine berths for ferries." in shell.asked
    assert shell.asked.rstrip().endswith("How many berths has the north quay?")
    assert shell.tools() == []


def test_numbers_are_in_the_order_of_mention(shell: Shell) -> None:
    shell.script(saying("At noon [^2]; nine berths [^1]."))
    said = shell.ask("--mode", "qa", "berths quay ferries; ferry Aurora sails?")
    first, second = [line for line in said.splitlines() if line.startswith("[^")]
    assert said.startswith("At noon [^1]; nine berths [^2].\n")
    assert first.startswith("[^1]: [[")
    assert second.startswith("[^2]: [[")
    assert first.split("[[")[1] != second.split("[[")[1]


def test_sources_are_listed_if_the_model_cites_none(shell: Shell) -> None:
    shell.script(saying("Nine."))
    said = shell.ask("--mode", "qa", "How many berths has the north quay?")
    assert said.startswith("Nine.\n\n#### Sources\n")
    assert "[^1]: [[sea/harbour.md#Berths]]" in said
    assert "(lines" not in said


def test_a_number_without_a_source_is_told_apart(shell: Shell) -> None:
    shell.script(saying("Nine [^1], or ten [^7]."))
    shell.ask("--mode", "qa", "How many berths has the north quay?")
    assert "the answer cites [^7], and no source has that number" in shell.err


def test_the_object_for_machines_has_the_sources_and_what_was_found(shell: Shell) -> None:
    shell.script(saying("Nine [^1]."))
    answer = shell.ask_json("--mode", "qa", "How many berths has the north quay?")
    assert answer["answer"] == "Nine [^1]."
    (source,) = answer["sources"]
    assert source == {
        "number": 1,
        "path": "sea/harbour.md",
        "title": "harbour",
        "link": "sea/harbour.md#Berths",
        "heading": "Berths",
        "anchor": "Berths",
        "start": 1,
        "end": 3,
    }
    assert answer["found"][0]["path"] == "sea/harbour.md"
    assert any("words alone" in each for each in answer["warnings"])


def test_a_scope_holds_for_the_search(shell: Shell) -> None:
    question = "Where do the ferry Aurora and trains leave?"
    for where, path in ((("land",), "land/trains.md"), (("#ferry",), "sea/log.md")):
        options = [word for each in where for word in ("--in", each)]
        found = shell.ask_json("--mode", "qa", question, *options)["found"]
        assert {each["path"] for each in found} == {path}
    found = shell.ask_json("--mode", "qa", question, "--until", "2001-01-01")["found"]
    assert found == []


def test_a_secret_in_what_was_found_does_not_pass(shell: Shell, tmp_path: Path) -> None:
    (shell.folder / "key.md").write_text(f"The zebra key: {KEY}\n", "utf-8")
    shell.ask("--mode", "qa", "What is the zebra key?")
    assert "The zebra key: [redacted: GitHub token]" in shell.asked
    kept = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*.jsonl"))
    assert kept
    assert KEY.encode() not in kept


def test_a_session_goes_on_and_what_was_found_before_is_gone(shell: Shell) -> None:
    shell.ask("--mode", "qa", "How many berths has the north quay?")
    session = shell.err.split()[1]
    shell.ask("--mode", "qa", "--session", session, "When does the Aurora sail?")
    sent = str(shell.bodies[-1]["messages"])
    assert "The ferry Aurora sails at noon." in sent
    assert "nine berths" not in sent
    assert sent.count("How many berths has the north quay?") == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--mode", "qa", "--files"), "--files needs --mode agent or plan; qa calls no tools"),
        (("--mode", "ask"), "'ask'"),
        (("--mode", "qa", "--in", "#"), "--in '#' is neither a folder nor a tag"),
        (("--web", "all"), "'all'"),
    ],
)
def test_what_does_not_go_together_is_refused(
    shell: Shell, options: tuple[str, ...], problem: str
) -> None:
    said = error("ask", "Why?", *options, cwd=shell.folder, code=2)
    assert problem in " ".join(said.replace("│", " ").split())
    assert shell.bodies == []


@pytest.mark.parametrize("option", [("--in", "sea"), ("--since", "2026-01-01")])
def test_a_scope_without_a_search_is_refused(shell: Shell, option: tuple[str, str]) -> None:
    said = error("ask", "Why?", *option, cwd=shell.folder)
    assert said == (
        "error: --in, --since and --until say where to search notes, but nothing here "
        "searches notes: add --mode qa, --mode plan or --files\n"
    )
    assert shell.bodies == []


def test_servers_of_tools_do_not_go_with_answers_from_notes(shell: Shell) -> None:
    (shell.folder / "mcp.json").write_text('{"mcpServers": {}}', "utf-8")
    said = error("ask", "Why?", "--mode", "qa", "--mcp", "mcp.json", cwd=shell.folder)
    assert "--mode qa answers from notes and calls no tools" in said


# -- plans ---------------------------------------------------------------------------------------


def test_a_plan_searches_and_the_answer_cites(shell: Shell) -> None:
    shell.script(
        calling(("a", "localSearch", {"query": "berths north quay"})), saying("Nine [^1].")
    )
    assert shell.ask("--mode", "plan", "How many berths has the north quay?") == (
        "Nine [^1].\n\n[^1]: [[sea/harbour.md#Berths]]\n"
    )
    assert shell.tools(0) == ["localSearch"]
    assert shell.tools() == []
    assert "nine berths for ferries" in shell.asked


def test_a_plan_over_files_looks_freely_and_changes_nothing_unasked(shell: Shell) -> None:
    read = ("a", "read", {"path": "sea/log.md"})
    write = ("b", "write", {"path": "new.md", "content": "x"})
    shell.script(calling(read, write), saying("Noon."))
    assert shell.ask("--mode", "plan", "--files", "When?") == "Noon.\n"
    assert set(shell.tools(0)) == {
        "localSearch", "ls", "read", "grep", "getFileTree", "write", "edit", "touch", "mv", "rm",
        "undo",
    }  # fmt: skip
    assert "The ferry Aurora sails at noon." in shell.asked
    assert "denied" in shell.err
    assert "--allow-tools lets tools run" in shell.err
    assert not (shell.folder / "new.md").exists()


def test_a_plan_is_shown_beginnings_of_what_is_attached(shell: Shell) -> None:
    long = "First words.\n\n" + "Much more. " * 200
    (shell.folder / "long.md").write_text(long, "utf-8")
    shell.ask("--mode", "plan", "--attach", "long", "What?")
    plan, answer = (str(body["messages"][-1]["content"]) for body in shell.bodies)
    assert "long.md" in plan
    assert "First words." in plan
    assert len(plan) < 1_000
    assert long.strip() in answer


def test_a_scope_holds_for_a_plan(shell: Shell) -> None:
    shell.script(calling(("a", "localSearch", {"query": "leave ferry trains"})))
    found = shell.ask_json("--mode", "plan", "--in", "land", "Where?")["found"]
    assert [each["path"] for each in found] == ["land/trains.md"]


# -- files ---------------------------------------------------------------------------------------


def test_files_are_tools_and_changes_are_denied_unless_allowed(shell: Shell) -> None:
    write = calling(("a", "write", {"path": "new.md", "content": "It is new.\n"}))
    shell.script(write, saying("No."))
    assert shell.ask("--files", "Write it.") == "No.\n"
    assert not (shell.folder / "new.md").exists()
    shell.script(write, saying("Yes."))
    assert shell.ask("--files", "--allow-tools", "Write it.") == "Yes.\n"
    assert (shell.folder / "new.md").read_text("utf-8") == "It is new.\n"
    assert "localSearch" in shell.tools()


def test_an_agent_that_searches_cites_as_an_answer_from_notes_does(shell: Shell) -> None:
    searches = (
        calling(("a", "localSearch", {"query": "When does the Aurora sail?"}), text="Let me see."),
        calling(("b", "localSearch", {"query": "berths north quay"})),
    )
    shell.script(*searches, saying("Nine [^2], at noon [^1]."))
    assert shell.ask("--files", "How many berths, and when?") == (
        "Nine [^1], at noon [^2].\n\n[^1]: [[sea/harbour.md#Berths]]\n[^2]: [[sea/log.md]]\n"
    )
    assert "changed after it was written" not in shell.err
    shell.script(*searches, saying("Nine [^2]."))
    report = shell.ask_json("--files", "How many berths?")
    assert report["answer"] == "Nine [^1]."
    assert [(each["number"], each["link"]) for each in report["sources"]] == [
        (1, "sea/harbour.md#Berths")
    ]
    assert {each["path"] for each in report["found"]} >= {"sea/harbour.md", "sea/log.md"}
    told = lamina("why", report["session"], cwd=shell.folder)[1]
    assert "Searched for When does the Aurora sail?" in told
    assert "Searched for berths north quay" in told


def test_a_plan_shows_the_numbers_that_it_gives_in_the_end(shell: Shell) -> None:
    searches = calling(
        ("a", "localSearch", {"query": "Aurora sails at noon"}),
        ("b", "localSearch", {"query": "berths north quay"}),
    )
    shell.script(searches, saying("Nine [^2]."))
    assert shell.ask("--mode", "plan", "How many berths?").startswith("Nine [^1].\n\n[^1]: ")
    assert "changed after it was written" not in shell.err


def test_the_web_is_searched_where_a_person_says_and_after_they_agreed(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = calling(("a", "webSearch", {"query": "quays"}))
    page = {"title": "Quays", "url": "https://q.example/", "snippet": "Ten."}
    body = json.dumps({"results": [page]}).encode()
    monkeypatch.setenv("LAMINA_WEB_SEARCH_KEY", "secret")
    with serving({"/s": lambda _: answer(200, body, Content_Type="application/json")}) as server:
        where = f"http://127.0.0.1:{server.port}/s"
        shell.script(search, saying("No."))
        assert shell.ask("--web-search", where, "How many?") == "No.\n"
        assert shell.tools() == ["read_result", "webSearch"]
        assert server.asked == []
        shell.script(search, saying("Ten [^1]."))
        assert shell.ask("--web-search", where, "--allow-tools", "How many?") == (
            "Ten [^1].\n\n[^1]: [Quays](<https://q.example/>)\n"
        )
        (asked,) = server.asked
        assert asked.headers["authorization"] == "bearer secret"
        monkeypatch.setenv("LAMINA_WEB_SEARCH", where)
        shell.ask("What?")
        assert shell.tools() == ["read_result", "webSearch"]
        shell.ask("--mode", "qa", "When does the Aurora sail?")
        assert shell.tools() == []
    told = error("ask", "--web-search", "x", "--mode", "qa", "What?", cwd=shell.folder)
    assert "calls no tools" in told


def test_without_files_there_are_none(shell: Shell) -> None:
    shell.ask("What?")
    assert shell.tools() == []
    assert "undo" not in str(shell.bodies[-1])


def test_a_scope_holds_for_the_search_that_comes_with_files(shell: Shell) -> None:
    shell.script(calling(("a", "localSearch", {"query": "leave ferry trains"})), saying("There."))
    shell.ask("--files", "--in", "land", "Where?")
    assert "Trains leave" in shell.asked
    assert "Aurora" not in shell.asked


# -- attachments, memory, the web ----------------------------------------------------------------


def test_everything_can_be_attached_by_its_reference(shell: Shell) -> None:
    shell.ask(
        "What?", "--attach", "land/", "-a", "#ferry", "-a", "[[harbour#Berths]]",
        "--essential", "plan", "--active", "sea/log.md",
    )  # fmt: skip
    for text in (*NOTES.values(), "The pier opens in May."):
        assert str(shell.bodies[-1]["messages"]).count(text.strip().split("\n")[-1]) == 1


@pytest.mark.parametrize("option", ["--attach", "--essential", "--active"])
def test_what_cannot_be_attached_is_refused_before_anything_is_asked(
    shell: Shell, option: str
) -> None:
    said = error("ask", "What?", option, "gone", cwd=shell.folder)
    assert said == "error: cannot attach: gone does not exist in the workspace\n"
    assert shell.bodies == []


def test_a_page_is_refused_unless_its_host_is_allowed(shell: Shell) -> None:
    said = error("ask", "What?", "-a", "https://example.org/x", cwd=shell.folder)
    assert said == (
        "error: cannot attach https://example.org/x: fetching pages is off by default; "
        "--allow-host HOST allows one host, --web public any public host\n"
    )
    assert shell.bodies == []


def test_a_host_that_is_not_listed_is_left_out_and_that_is_said(shell: Shell) -> None:
    shell.ask("What?", "-a", "http://127.0.0.1:9/x", "--allow-host", "example.org")
    assert "http://127.0.0.1:9/x" in shell.err
    assert "http://127.0.0.1:9/x" in shell.asked


def test_what_was_allowed_stays_in_the_session(shell: Shell) -> None:
    answer = shell.ask_json("Hello?", "--web", "public", "--allow-host", "localhost:8080")
    journal = anyio.run(default_store(shell.folder).read, answer["session"])
    text = str(list(journal.entries.values()))
    assert "public" in text
    assert "localhost:8080" in text


def test_a_host_alone_means_listed_ones() -> None:
    def changes(**flags: Any) -> SettingChanges:
        return SessionFlags(**flags).options().changes

    assert changes().as_settings() == {}
    assert changes(allow_host=["a", "b"]) == SettingChanges(web="listed", allow_hosts=("a", "b"))
    assert changes(web="public", allow_host=["a"]).web == "public"
    assert changes(web="off").as_settings() == {"web": "off"}


def test_memory_goes_along_unless_it_is_left_out(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "me.md").write_text("- I drink tea.\n", "utf-8")
    monkeypatch.setenv("LAMINA_MEMORY", str(tmp_path / "me.md"))
    for mode in ("agent", "qa", "plan"):
        shell.ask("Hello?", "--mode", mode)
        assert "I drink tea." in str(shell.bodies[-1]["messages"][0])
        shell.ask("Hello?", "--mode", mode, "--no-memory")
        assert "I drink tea." not in str(shell.bodies[-1])


def test_the_composer_is_told_how_changes_are_proposed(shell: Shell) -> None:
    shell.ask("@composer shorten it.", "-a", "plan")
    assert "Never invent a path" in str(shell.bodies[-1])
