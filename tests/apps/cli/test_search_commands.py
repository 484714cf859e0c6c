"""`lamina select`, `lamina search`, `lamina index`."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.apps.cli.app import app as whole_app
from lamina.apps.cli.search_commands import app
from lamina.errors import LaminaError

TOOLS: list[dict[str, Any]] = [
    {
        "name": "get_forecast",
        "server": "sky",
        "description": "Weather of the next days: temperature, rain and wind.",
        "server_description": "Meteorology.",
        "params": ["city", "days"],
    },
    {"name": "send_mail", "server": "post", "description": "Sends an e-mail to somebody."},
    {"name": "book_flight", "description": "Buys a plane ticket."},
    {"name": "read_file", "server": "fs", "description": "Reads a file from the disk."},
    {"name": "write_file", "server": "fs", "description": "Writes text into a file on the disk."},
]
QUESTION = "Will it rain in Oslo tomorrow? Send the answer to Ada by e-mail."


class Ran:
    """What a command printed, and how it ended."""

    def __init__(self, *arguments: str, stdin: str = "") -> None:
        done = CliRunner().invoke(app, arguments, input=stdin)
        if done.exception and not isinstance(done.exception, LaminaError | OSError | SystemExit):
            raise done.exception
        self.out, self.code = done.stdout, done.exit_code
        self.error = done.stderr + (str(done.exception) if done.exception else "")

    @property
    def json(self) -> Any:
        assert self.code == 0, self.error
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("LAMINA_EMBED", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


@pytest.fixture
def tools(tmp_path: Path) -> str:
    return written(tmp_path, {"meta": {}, "tools": TOOLS, "queries": []})


@pytest.fixture
def agent(tmp_path: Path) -> str:
    folder = tmp_path / "agent"
    (folder / "rules").mkdir(parents=True)
    (folder / "references").mkdir()
    (folder / "agent.yaml").write_text("name: harbour\ndescription: Knows the harbour.\n", "utf-8")
    rules = {
        "rules/mooring.md": ("mooring", "How boats are tied up", "agent"),
        "rules/tone.md": ("tone", "How to talk to guests", "always"),
        "references/tides.md": ("tides", "High and low water by month", "agent"),
    }
    for path, (name, description, include) in rules.items():
        (folder / path).write_text(
            f"---\nname: {name}\ndescription: {description}\ninclude: {include}\n---\n"
            f"All about {name}: {description.lower()}.\n",
            "utf-8",
        )
    return str(folder)


def written(folder: Path, value: object, name: str = "tools.json") -> str:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(path)


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


# -- select --------------------------------------------------------------------------------------


def test_every_part_of_a_question_brings_its_tool_with_score_and_why(
    tools: str, embedding_cache: Path
) -> None:
    rows = Ran("select", QUESTION, "--tools", tools, "--json").json
    assert set(names(rows)[:2]) == {"get_forecast", "send_mail"}
    by_name = {row["name"]: row for row in rows}
    forecast = by_name["get_forecast"]
    assert (forecast["server"], forecast["kind"], forecast["origin"]) == ("sky", "tool", "search")
    assert forecast["id"] == "tool:sky/get_forecast"
    assert 0 < forecast["score"] <= 1
    assert forecast["part"] == "Will it rain in Oslo tomorrow?"
    assert forecast["why"].startswith(f"fits {forecast['part']!r}: get_forecast: Weather of the")
    assert by_name["send_mail"]["part"] == "Send the answer to Ada by e-mail."


def test_top_gives_exactly_so_many_of_the_ranking(tools: str, embedding_cache: Path) -> None:
    ranked = names(Ran("search", QUESTION, "--tools", tools, "--json").json)
    assert len(ranked) == 5
    for top in (1, 3, 5):
        rows = Ran("select", QUESTION, "--tools", tools, "--top", str(top), "--json").json
        assert names(rows) == ranked[:top]
    rows = Ran("select", QUESTION, "--tools", tools, "--top", "99", "--json").json
    assert sorted(names(rows)) == sorted(str(tool["name"]) for tool in TOOLS)


def test_presets_take_more_or_less(tools: str, embedding_cache: Path) -> None:
    taken = {
        preset: names(Ran("select", QUESTION, "--tools", tools, "--preset", preset, "--json").json)
        for preset in ("conservative", "normal", "aggressive")
    }
    assert {*taken["conservative"]} <= {*taken["normal"]}
    assert {*taken["normal"]} <= {*taken["aggressive"]}
    assert taken["normal"] == names(Ran("select", QUESTION, "--tools", tools, "--json").json)


def test_by_words_alone_there_is_no_score_and_it_is_said(tools: str) -> None:
    ran = Ran("select", "send an e-mail", "--tools", tools, "--lexical", "--json")
    first, *_ = ran.json
    assert (first["name"], first["score"], first["origin"]) == ("send_mail", None, "lexical")
    assert first["why"].startswith("shares words with 'send an e-mail': ")
    assert ran.error == "warning: found by words alone: embeddings are switched off\n"


def test_embeddings_are_switched_off_by_the_environment(
    tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    ran = Ran("select", "send an e-mail", "--tools", tools, "--json")
    assert names(ran.json)[0] == "send_mail"
    assert "words alone: embeddings are switched off (LAMINA_EMBED=off)" in ran.error


def test_what_a_person_sees_is_plain_and_says_why(tools: str) -> None:
    ran = Ran("select", "send an e-mail", "--tools", tools, "--lexical", "--top", "1")
    label, why = ran.out.splitlines()
    assert label == "   -  post · send_mail"
    assert why.startswith("      shares words with 'send an e-mail': ")
    assert "\x1b" not in ran.out


def test_the_question_may_come_from_standard_input(tools: str) -> None:
    asked = ("--tools", tools, "--lexical", "--top", "1", "--json")
    rows = Ran("select", "-", *asked, stdin="send an e-mail\n").json
    assert names(rows) == ["send_mail"]


def test_an_empty_question_is_refused(tools: str) -> None:
    for question, stdin in (("", ""), ("  \n", ""), ("-", "")):
        ran = Ran("select", question, "--tools", tools, stdin=stdin)
        assert ran.code == 2
        assert "the question is empty" in ran.error


def test_a_question_that_fits_nothing_is_no_error(tools: str) -> None:
    ran = Ran("select", "xylophone", "--tools", tools, "--lexical", "--json")
    # All of a small pool are offered, whatever is asked.
    assert {row["origin"] for row in ran.json} == {"whole_pool"}
    assert len(ran.json) == len(TOOLS)
    assert "nothing matches the question" in ran.error


def test_a_plain_match_is_never_hidden_among_a_few_tools_and_rules_keep_the_gate(
    tmp_path: Path, embedding_cache: Path
) -> None:
    about = {
        "get_weather": "Gets the current weather for a city.", "send_mail": "Sends an e-mail.",
        "read_file": "Reads a file.", "translate": "Translates a text.",
        "book_flight": "Books a flight.", "search_web": "Searches the web.",
        "convert": "Converts money.", "create_event": "Adds an event to the calendar.",
    }  # fmt: skip
    eight = [{"name": name, "description": text} for name, text in about.items()]
    question = "What is the weather in Oslo?"
    rows = Ran("select", question, "--tools", written(tmp_path, eight), "--json").json
    assert names(rows) == [*about]
    (tmp_path / "agent" / "rules").mkdir(parents=True)
    (tmp_path / "agent" / "agent.yaml").write_text("name: baker\n", "utf-8")
    rule = (
        "---\ninclude: agent\ndescription: Bread is baked at noon\n---\nBread is baked at noon.\n"
    )
    (tmp_path / "agent" / "rules" / "bread.md").write_text(rule, "utf-8")
    ran = Ran("select", question, "--agent", str(tmp_path / "agent"), "--json")
    assert ran.json == []
    assert "nothing stood out for this question" in ran.error


def test_the_rules_and_references_of_an_agent_are_chosen_from(agent: str) -> None:
    ran = Ran("select", "how are boats tied up?", "--agent", agent, "--lexical", "--json")
    always, first, *_ = ran.json
    assert (always["name"], always["include"], always["score"]) == ("tone", "always", None)
    assert always["why"] == "always included"
    assert (first["kind"], first["name"], first["include"]) == ("rule", "mooring", "agent")
    # What is manual is not searched for: it comes along or not at all.
    Path(agent, "rules/hand.md").write_text("How are boats tied up? By hand.\n", "utf-8")
    asked = ("select", "how are boats tied up?", "--agent", agent, "--lexical", "--json")
    assert "hand" not in names(Ran(*asked).json)
    Path(agent, "agent.yaml").write_text(
        "name: harbour\nrelations: {'rule:mooring': ['rule:hand']}\n", "utf-8"
    )
    assert Ran(*asked).json[-1]["why"].startswith("comes along with rule:mooring")
    shown = Ran("select", "talk to guests", "--agent", agent, "--lexical", "--top", "1").out
    assert shown.splitlines()[0] == "   -  tone (rule, always)"


def test_what_comes_along_says_what_it_came_from(agent: str, embedding_cache: Path) -> None:
    Path(agent, "agent.yaml").write_text(
        "name: harbour\n"
        "search: {top_n: 1, include_score: 1, expansion_depth: 1, expansion_threshold: 0.1,"
        " expansion_top_n: 1}\n"
        "relations: {'rule:mooring': ['rule:hand']}\n",
        "utf-8",
    )
    Path(agent, "rules/hand.md").write_text("By hand.\n", "utf-8")
    ran = Ran("select", "how are boats tied up?", "--agent", agent, "--json")
    assert [(row["name"], row["origin"], row["source"]) for row in ran.json] == [
        ("tone", "", ""),
        ("mooring", "search", ""),
        ("tides", "expansion", "rule:mooring"),
        ("hand", "relation", "rule:mooring"),
    ]
    shown = Ran("select", "how are boats tied up?", "--agent", agent).out
    assert "is like a text of rule:mooring: " in shown
    assert "comes along with rule:mooring\n" in shown


def test_without_either_the_folder_itself_is_looked_at(tmp_path: Path) -> None:
    ran = Ran("select", "anything", "--lexical")
    assert ran.code == 1
    assert "there is nothing to search in" in ran.error
    assert "give --tools FILE, or --agent PATH|NAME" in ran.error
    assert "(none known by name); notes are searched with `lamina notes search`" in ran.error
    write_skeleton("ada", tmp_path / "work" / ".lamina" / "agents")
    assert "(ada)" in Ran("select", "anything", "--lexical").error
    (tmp_path / "work" / "AGENTS.md").write_text("# Boats\n\nTie boats up twice.\n", "utf-8")
    assert Ran("select", "tie boats", "--lexical", "--json").json


def test_what_is_odd_about_an_agent_is_counted_with_the_command_that_names_it() -> None:
    write_skeleton("ada", Path(".lamina/agents"))
    Path(".lamina/agents/ada/rules/plain.md").write_text("Just words.", "utf-8")
    told = "1 oddity in the files of the agent 'ada'; `lamina agent check ada` names them"
    assert told in Ran("select", "words", "-A", "ada", "--lexical").error


def test_tools_that_cannot_be_read_are_named() -> None:
    told = "no tools: 'gone.json' cannot be read: No such file or directory; check the path"
    assert told in Ran("select", "x", "--tools", "gone.json").error


def test_tools_and_agent_do_not_go_together(tools: str, agent: str) -> None:
    ran = Ran("select", "x", "--tools", tools, "--agent", agent)
    assert ran.code == 2
    assert "cannot be combined" in ran.error


def test_top_and_preset_do_not_go_together(tools: str) -> None:
    ran = Ran("select", "x", "--tools", tools, "--top", "3", "--preset", "normal")
    assert ran.code == 2
    assert "both set how much is selected" in ran.error


def test_a_hostile_name_cannot_steer_the_terminal(tmp_path: Path) -> None:
    tool = {"name": "evil\x1b[2J\u202etool", "server": "a\nb", "description": "mail\x07 mail"}
    path = written(tmp_path, [tool, *TOOLS])
    for command in ("select", "search"):
        ran = Ran(command, "mail", "--tools", path, "--lexical", "--top", "2")
        assert "a b · evil\\x1b[2J\\u202etool" in ran.out
        assert "\x1b" not in ran.out
        assert "\x07" not in ran.out
    raw = Ran("select", "mail", "--tools", path, "--lexical", "--top", "2", "--json").out
    assert raw.isascii()
    assert tool["name"] in names(json.loads(raw))


def test_half_a_character_in_a_name_is_survived(tmp_path: Path) -> None:
    path = written(tmp_path, '[{"name": "half\\ud83d", "description": "mail"}]')
    assert "half\\ud83d" in Ran("select", "mail", "--tools", path, "--lexical").out
    (row,) = Ran("select", "mail", "--tools", path, "--lexical", "--json").json
    assert row["name"] == "half\ud83d"


# -- files with tools ----------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {}, "unit": {}}}
FORMS = {
    "a list": [{"name": "f", "description": "d", "params": ["city", "unit"]}],
    "an answer of an MCP server": {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": [{"name": "f", "description": "d", "inputSchema": SCHEMA}]},
    },
    "its result": {"tools": [{"name": "f", "description": "d", "inputSchema": SCHEMA}]},
    "chat completions": [
        {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}
    ],
    "responses": {
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}]
    },
    "messages": [{"name": "f", "description": "d", "input_schema": SCHEMA}],
    "gemini": [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": SCHEMA}]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_tools_are_read_in_every_form_that_people_have(tmp_path: Path, form: str) -> None:
    from lamina.apps.views.search_candidates import ListedTool, read_tools

    (tool,) = read_tools(Path(written(tmp_path, FORMS[form])))
    assert replace(tool, schema={}) == ListedTool(
        name="f", description="d", parameters=("city", "unit")
    )


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + json.dumps(TOOLS))
    assert Ran("select", "mail", "--tools", path, "--lexical", "--top", "1", "--json").json


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{'name': 1}", "is not JSON: Expecting property name"),
        ("", "is not JSON: Expecting value"),
        ("[" * 100_000, "is not JSON: "),
        ("[]", "no tools found in"),
        ("{}", "no tools found in"),
        ('{"tools": []}', "no tools found in"),
        ('"text"', "no tools found in"),
        ('[{"description": "d"}]', "has no name: `name` is missing"),
        ('[{"name": "a"}, {"name": " "}]', "tool 2 of "),
        ('[{"name": 7}]', "has no name: `name` is 7"),
        ('["a"]', 'is "a", not an object with `name` and `description`'),
        ('[{"name": "a", "description": []}]', "`description` of tool 1 of "),
        ('[{"name": "a"}, {"name": "b"}, {"name": "a"}]', "twice, as number 1 and 3"),
        (
            '[{"name": "a", "server": "s"}, {"name": "a", "server": "s"}]',
            "names the tool 'a' of the server 's' twice",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: str, problem: str) -> None:
    path = written(tmp_path, content)
    ran = Ran("select", "x", "--tools", path, "--lexical")
    assert (ran.code, ran.out) == (1, "")
    assert problem in ran.error
    assert "tools.json" in ran.error


def test_a_file_that_is_not_there_or_not_text_says_so(tmp_path: Path) -> None:
    assert "gone.json" in Ran("select", "x", "--tools", "gone.json", "--lexical").error
    path = tmp_path / "binary.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert "is not JSON: 'utf-8' codec" in Ran("select", "x", "--tools", str(path)).error


def test_a_name_on_two_servers_is_two_tools(tmp_path: Path) -> None:
    path = written(tmp_path, [{"name": "a mail", "server": server} for server in ("x", "y")])
    rows = Ran("select", "mail", "--tools", path, "--lexical", "--json").json
    assert [row["server"] for row in rows] == ["x", "y"]


# -- search --------------------------------------------------------------------------------------


def test_the_ranking_has_score_rank_by_words_and_the_best_text(
    tools: str, embedding_cache: Path
) -> None:
    rows = Ran("search", "an umbrella for tomorrow's weather", "--tools", tools, "--json").json
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5]
    first = rows[0]
    assert (first["name"], first["lexical_rank"]) == ("get_forecast", 1)
    assert "temperature" in first["chunk"]
    assert rows[-1]["lexical_rank"] is None


def test_the_ranking_is_shown_plainly(tools: str) -> None:
    out = Ran("search", "write a file", "--tools", tools, "--lexical", "--top", "1").out
    first, text = out.splitlines()
    assert first == "  1     -  fs · write_file, by words 1"
    assert text.strip().startswith("write_file")


# -- index ---------------------------------------------------------------------------------------


def test_indexing_says_what_was_new_known_and_how_large_it_is(
    tools: str, agent: str, tmp_path: Path, embedding_cache: Path
) -> None:
    first = Ran("index", tools).out.splitlines()
    assert first[0] == "5 items, 5 chunks: 5 new, 0 known."
    assert first[1].startswith(f"{tmp_path / 'data' / 'index.sqlite'}: 5 chunks, ")
    both = Ran("index", "--tools", tools, "--agent", agent).out
    assert both.startswith("8 items, ")
    assert ", 5 known." in both
    again = Ran("index", tools, agent).out
    assert ": 0 new, " in again


def test_an_edited_tool_is_indexed_again_and_no_other(
    tools: str, tmp_path: Path, embedding_cache: Path
) -> None:
    Ran("index", tools)
    edited = [dict(TOOLS[0], description="Nothing any more."), *TOOLS[1:]]
    assert ": 1 new, 4 known." in Ran("index", written(tmp_path, edited)).out


def test_without_a_model_words_are_indexed_and_it_is_said(
    tools: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAMINA_EMBED", "off")
    ran = Ran("index", tools)
    assert ran.out.startswith("5 items, 5 chunks: 5 new, 0 known.")
    assert "warning: found by words alone: embeddings are switched off" in ran.error


def test_an_index_that_cannot_be_kept_is_not_called_done(tools: str, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    ran = Ran("index", tools, "--lexical")
    assert ran.code == 1
    assert ran.out.endswith("5 new chunks could not be saved, and will be indexed again\n")
    assert "cannot be" in ran.error


def test_stats_say_what_the_index_holds(tools: str, tmp_path: Path) -> None:
    assert Ran("index", "--stats", "--json").json["chunks"] == {}
    Ran("index", tools, "--lexical")
    stats = Ran("index", "--stats", "--json").json
    assert stats["chunks"] == {"": 5}
    assert stats["path"] == str(tmp_path / "data" / "index.sqlite")
    assert stats["bytes"] > 0
    assert "        5  chunks by their words alone" in Ran("index", "--stats").out


def test_clearing_asks_first(tools: str) -> None:
    Ran("index", tools, "--lexical")
    refused = Ran("index", "--clear", stdin="n\n")
    assert refused.code == 1
    assert Ran("index", "--stats", "--json").json["chunks"] == {"": 5}
    agreed = Ran("index", "--clear", stdin="y\n")
    assert "5 chunks removed" in agreed.out
    assert Ran("index", "--stats", "--json").json["chunks"] == {}
    assert "0 chunks removed" in Ran("index", "--clear", "--yes").out


def test_a_file_of_another_program_is_not_cleared(tmp_path: Path) -> None:
    path = tmp_path / "data" / "index.sqlite"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as file:
        file.execute("CREATE TABLE accounts (name)")
        file.commit()
    before = path.read_bytes()
    ran = Ran("index", "--clear", "--yes")
    assert ran.code == 1
    assert "the index was not cleared" in ran.error
    assert "a database of another program" in ran.error
    assert path.read_bytes() == before


def test_a_damaged_index_is_set_aside_and_the_answer_comes(tools: str, tmp_path: Path) -> None:
    path = tmp_path / "data" / "index.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"nothing of ours\n" * 99)
    ran = Ran("select", "send an e-mail", "--tools", tools, "--lexical", "--json")
    assert names(ran.json)[0] == "send_mail"
    assert "was damaged (file is not a database); it is now index.sqlite.damaged-1" in ran.error
    assert Ran("index", "--stats", "--json").json["set_aside"] == [f"{path}.damaged-1"]


@pytest.mark.parametrize(
    "arguments", [("--stats", "--clear"), ("--stats", "a.json"), ("--clear", "--agent", "a")]
)
def test_what_is_about_the_whole_index_goes_alone(arguments: tuple[str, ...]) -> None:
    ran = Ran("index", *arguments)
    assert ran.code == 2
    assert "--stats and --clear cannot be combined with other options" in ran.error


def test_a_long_indexing_says_how_far_it_is(tmp_path: Path) -> None:
    many = [{"name": f"tool_{n}", "description": f"Does {n}."} for n in range(10_000)]
    ran = Ran("index", written(tmp_path, many), "--lexical")
    lines = ran.error.splitlines()
    assert lines[0] == "indexing 10,000 chunks"
    assert lines[1:4] == ["25%", "50%", "75%"]
    assert ran.out.startswith("10,000 items, 10,000 chunks: 10,000 new, 0 known.")


# -- graphs --------------------------------------------------------------------------------------


def test_a_graph_is_built_ahead_and_says_how_large_it_is(tools: str, embedding_cache: Path) -> None:
    said = Ran("index", tools, "--graph")
    assert said.code == 0, said.error
    line = said.out.splitlines()[1]
    assert line.startswith("graph: 5 items, ")
    assert "similarities of 0.5 or more" in line
    assert Ran("index", "--stats", "--json").json["graphs"] == 1
    assert "1  graphs" in Ran("index", "--stats").out
    # It is there already.
    Ran("select", "read from the disk", "--tools", tools, "--expand", "1", "--graph", "--json")
    assert Ran("index", "--stats", "--json").json["graphs"] == 1


@pytest.mark.parametrize("graph", [(), ("--graph",)])
def test_what_is_alike_comes_along_by_search_and_by_graph(
    agent: str, embedding_cache: Path, graph: tuple[str, ...]
) -> None:
    Path(agent, "agent.yaml").write_text(
        "name: harbour\n"
        "search: {top_n: 1, include_score: 1, expansion_threshold: 0.1, expansion_top_n: 1}\n",
        "utf-8",
    )
    asked = ("select", "how are boats tied up?", "--agent", agent, "--json")
    assert names(Ran(*asked).json) == ["tone", "mooring"]
    rows = Ran(*asked, "--expand", "1", *graph).json
    assert [(row["name"], row["origin"], row["source"]) for row in rows] == [
        ("tone", "", ""),
        ("mooring", "search", ""),
        ("tides", "expansion", "rule:mooring"),
    ]
    deeper = Ran(*asked, "--expand", "2", *graph).json
    assert names(deeper) == ["tone", "mooring", "tides"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("select", "q", "--graph"), "--graph needs --expand"),
        (("select", "q", "--expand", "0", "--graph"), "--graph needs --expand"),
        (("select", "q", "--top", "3", "--expand", "1"), "--top and --expand"),
        (("index", "--stats", "--graph"), "--graph needs something to index"),
        (("index", "--lexical", "--graph"), "--graph and --lexical"),
    ],
)
def test_options_that_would_do_nothing_are_refused(
    arguments: tuple[str, ...], problem: str
) -> None:
    ran = Ran(*arguments)
    assert ran.code == 2
    assert problem in " ".join(ran.error.replace("│", " ").split())


# -- the tools of an agent -------------------------------------------------------------------------

WHAT_TIME = "Convert the current time to another timezone"


@pytest.fixture
def clockwork(agent: str) -> str:
    """The agent with two real servers, of which one is always included."""
    programs = Path(sys.executable).parent
    servers = {
        "time": {"command": str(programs / "mcp-server-time"), "include": "agent"},
        "git": {"command": str(programs / "mcp-server-git")},
    }
    written(Path(agent), {"mcpServers": servers}, "mcp.json")
    return agent


def test_the_tools_of_a_trusted_agent_are_chosen_as_a_session_would(
    clockwork: str, embedding_cache: Path
) -> None:
    ran = Ran("select", WHAT_TIME, "--agent", clockwork, "--trust", "--json")
    rows = {row["id"]: row for row in ran.json}
    assert rows["tool:git/git_status"]["why"] == "always included"
    assert rows["rule:tone"]["why"] == "always included"
    chosen = rows["tool:time/convert_time"]
    assert (chosen["kind"], chosen["server"], chosen["include"]) == ("tool", "time", "agent")
    assert chosen["score"] > 0.4
    assert "rule:mooring" not in rows
    assert ran.error == ""


def test_what_is_selected_is_what_a_session_takes(clockwork: str, embedding_cache: Path) -> None:
    selected = {
        row["id"] for row in Ran("select", WHAT_TIME, "-A", clockwork, "--trust", "--json").json
    }
    arguments = ["context", WHAT_TIME, "-A", clockwork, "--trust", "-t", "openai:gpt-5", "--json"]
    shown = CliRunner().invoke(whole_app, arguments)
    assert shown.exit_code == 0, shown.stderr
    context = json.loads(shown.stdout)["context"]
    taken = {row["item"] for row in (*context["items"], *context["tools"])}
    assert taken - selected == {"tool:/read_result"}
    assert selected <= taken


def test_the_servers_of_an_agent_that_is_not_trusted_are_left_out_by_name(clockwork: str) -> None:
    for command in ("select", "search"):
        ran = Ran(command, WHAT_TIME, "--agent", clockwork, "--lexical", "--json")
        assert "tool" not in {row["kind"] for row in ran.json}
        assert ran.error.count("its servers (time, git) are not started") == 1
        assert "lamina trust" in ran.error


def test_a_server_that_does_not_start_costs_its_own_tools(agent: str) -> None:
    programs = Path(sys.executable).parent
    servers = {
        "gone": {"command": str(programs / "no-such-server")},
        "time": {"command": str(programs / "mcp-server-time")},
    }
    written(Path(agent), {"mcpServers": servers}, "mcp.json")
    ran = Ran("search", "time", "--agent", agent, "--trust", "--lexical", "--json")
    assert {row["server"] for row in ran.json} == {"time"}
    assert "not offered: gone: " in ran.error
    assert "tried again" not in ran.error


def test_tools_are_searched_as_the_agent_wants_tools_to_be_searched(
    clockwork: str, embedding_cache: Path
) -> None:
    sheet = Path(clockwork) / "agent.yaml"
    sheet.write_text("name: harbour\ntool_search:\n  search: false\n", "utf-8")
    rows = Ran("select", WHAT_TIME, "--agent", clockwork, "--trust", "--json").json
    assert "time" not in {row["server"] for row in rows}
    sheet.write_text("name: harbour\ntool_policy: all\n", "utf-8")
    rows = Ran("select", WHAT_TIME, "--agent", clockwork, "--trust", "--json").json
    assert {row["why"] for row in rows if row["server"]} == {"always included"}
    assert "tool:time/convert_time" in {row["id"] for row in rows}


def test_a_rule_that_the_question_names_is_in_and_one_that_is_not_there_is_said(agent: str) -> None:
    ran = Ran("select", "How? @rule:mooring @ref:tide", "--agent", agent, "--lexical", "--json")
    named = {row["id"]: row for row in ran.json}["rule:mooring"]
    assert named["why"] == "named in the question"
    assert "there is no reference 'tide'; did you mean reference:tides?" in ran.error


def test_trust_goes_with_an_agent(tools: str) -> None:
    ran = Ran("select", "Hello?", "--tools", tools, "--trust")
    assert ran.code == 2
    assert "--trust needs an agent" in ran.error
