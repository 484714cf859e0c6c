"""`lamina agent`: writing one, finding them, looking at them, checking them."""

import json
from pathlib import Path

import pytest
from inline_snapshot import snapshot
from tests.adapters.agents.files import write
from tests.apps.cli.inside import error, lamina, output


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINA_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    return write(tmp_path / "work", {"notes.md": "x"})


HARBOUR = {
    "agent.yaml": "name: harbour\ndescription: Knows the harbour.\nversion: 2\nsettings: {top_p: 0.5}\nsearch: {top_n: 3, top_k: 20}\ntool_search: normal\n",
    "persona.md": "You are the harbour master.",
    "rules/care.md": "---\ndescription: Take care.\npriority: 7\ninclude: always\n---\nCare for the ships.",
    "rules/big.md": "---\ndescription: Big ships.\nglobs: ['*.ship']\n---\nFirst.",
    "references/tides.md": "---\ndescription: Tides.\ninclude: agent\n---\nHigh at noon.",
    "mcp.json": '{"mcpServers": {"pier": {"url": "https://me:s3cret@h/mcp?key=s3cret", "include": "agent",'
    ' "headers": {"X": "s3cret"}, "tools": {"moor": {"permission": "free"}}}}}',
    "projects/pier/prompt.md": "Build the pier.",
}


def test_a_new_agent_passes_its_check_and_is_never_written_over(work: Path) -> None:
    said = output("agent", "new", "ada", cwd=work)
    assert ".lamina/agents/ada" in said
    checked = output("agent", "check", "ada", "--strict", cwd=work)
    assert checked == "1 agent: no problems.\n"
    (work / ".lamina/agents/ada/persona.md").write_text("Mine.")
    assert "already exists; nothing was written" in error("agent", "new", "ada", cwd=work)
    assert (work / ".lamina/agents/ada/persona.md").read_text() == "Mine."
    output("agent", "new", "Ben 2", "--in", "others", cwd=work)
    assert (
        json.loads(output("agent", "show", "others/Ben 2", "--json", cwd=work))["name"] == "Ben 2"
    )
    for name in ("..", "a/b", ""):
        assert "is not a valid folder name" in error("agent", "new", name, cwd=work)


@pytest.mark.parametrize("name", ["no", "1.0", "a: b", "ünï", "#x", "- x", "'q'"])
def test_an_agent_is_called_as_it_was_named(work: Path, name: str) -> None:
    output("agent", "new", "--", name, cwd=work)
    shown = json.loads(output("agent", "show", f".lamina/agents/{name}", "--json", cwd=work))
    assert shown["name"] == name
    assert not [each for each in shown["problems"] if each.get("level") != "warning"]


def test_agents_are_listed_with_what_they_hold(work: Path) -> None:
    assert "No agents in" in output("agent", "list", cwd=work)
    write(work / ".lamina/agents/harbour", HARBOUR)
    write(work / ".lamina/agents/odd", {"agent.yaml": "model: x", "rules/a.md": "A"})
    write(work / "../data/agents/mine", {"agent.yaml": "description: Mine."})
    write(work, {"AGENTS.md": "Hello."})
    assert output("agent", "list", cwd=work) == snapshot("""\
 name     where      rules  refs  skills  servers  problems            what for           \n\
 mine     user           0     0       0        0  -                   Mine.              \n\
 harbour  workspace      2     1       0        1  -                   Knows the harbour. \n\
 odd      workspace      1     0       0        0  1 error, 1 warning                     \n\
 work     folder         1     0       0        0  -                                      \n\
""")
    rows = json.loads(output("agent", "list", "--json", cwd=work))
    assert [(row["name"], row["errors"], row["warnings"]) for row in rows] == [
        ("mine", 0, 0),
        ("harbour", 0, 0),
        ("odd", 1, 1),
        ("work", 0, 0),
    ]


def test_on_a_narrow_terminal_agents_are_listed_line_by_line(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    write(work / ".lamina/agents/harbour", HARBOUR)
    write(work / ".lamina/agents/odd", {"agent.yaml": "model: x"})
    write(work / ".lamina/agents/new", {"agent.yaml": "description: New."})
    listed = [line.rstrip() for line in output("agent", "list", cwd=work).splitlines()]
    assert listed == snapshot(
        [
            "harbour (workspace)",
            "  2 rules, 1 reference, 1 server",
            "  Knows the harbour.",
            "new (workspace)",
            "  New.",
            "odd (workspace)",
            "  1 error",
        ]
    )


def test_a_new_agent_is_said_to_be_found_by_its_name_where_it_can_be(work: Path) -> None:
    assert "`lamina chat --agent ada`" in output("agent", "new", "ada", cwd=work)
    there = output("agent", "new", "ada", "-w", "a b", cwd=work)
    assert "`lamina agent show ada -w 'a b'`" in there
    assert "`lamina chat --agent others/ada`" in output(
        "agent", "new", "ada", "--in", "others", cwd=work
    )
    assert (
        "'notes.md/ada' cannot be created: Not a directory; choose another place with --in FOLDER"
        in error("agent", "new", "ada", "--in", "notes.md", cwd=work)
    )


def test_a_search_is_shown_by_the_name_of_its_preset(work: Path) -> None:
    searches = "search: aggressive\ntool_search: {preset: conservative, top_n: 4}\n"
    write(work / "harbour", {"agent.yaml": searches})
    shown = output("agent", "show", "harbour", cwd=work)
    assert 'guide_search=aggressive, tool_search={"top_k":10,"top_n":4}' in shown


def test_a_question_to_a_model_without_a_key_leaves_no_session(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    write(work / "pilot", {"agent.yaml": "model: anthropic:claude-opus-5"})
    assert "no key for 'anthropic'" in error(
        "ask", "Hello?", "--agent", "pilot", "--trust", cwd=work
    )
    assert not list((work / "../data").glob("*/sessions/*"))


def test_an_agent_is_shown_without_its_secrets(work: Path) -> None:
    write(work / "harbour", HARBOUR)
    write(work / ".lamina", {"persona.md": "Be brief."})
    shown = output("agent", "show", "harbour", cwd=work)
    assert shown == snapshot("""\
harbour 2
for         Knows the harbour.
from        harbour
settings    top_p=0.5, guide_search={"top_n":3}, tool_search=normal
persona     You are the harbour master.
workspace   Be brief.
project     pier: Build the pier.

level  kind       include   name   tokens  description             \n\
  500  reference  [agent]   tides      ~4  Tides.                  \n\
  007  rule       [always]  care       ~5  Take care.              \n\
  500  rule       [manual]  big        ~2  Big ships. (with *.ship)

server      pier: https://h/mcp (required, agent)
              moor: permission free
""")
    told = output("agent", "show", "harbour", "--json", cwd=work)
    assert "s3cret" not in shown + told
    whole = json.loads(told)
    assert [(each["kind"], each["name"]) for each in whole["guides"]] == [
        ("reference", "tides"),
        ("rule", "care"),
        ("rule", "big"),
    ]
    assert whole["servers"]["pier"]["tools"] == {"moor": {"permission": "free"}}
    assert [each["name"] for each in whole["persona_parts"]] == ["persona", "workspace_persona"]


def test_what_stands_in_files_moves_nothing_on_the_terminal(work: Path) -> None:
    text = '---\ndescription: "[red]a[/red] \\e[2J"\ninclude: always\n---\nx\x1b[2J'
    write(work / "a", {"agent.yaml": "name: '[b]x'", "persona.md": "\x1b[2J", "rules/r.md": text})
    shown = output("agent", "show", "a", cwd=work)
    assert "\x1b" not in shown
    assert "[red]a[/red] \\x1b[2J" in shown


def test_every_problem_is_a_file_and_a_line(work: Path) -> None:
    write(
        work / "a",
        {"agent.yaml": "name: a\nmodel: x\n", "rules/r.md": "---\nglobs: **/*.ts\n---\nR"},
    )
    code, out, err = lamina("agent", "check", "a", cwd=work)
    assert (code, err) == (1, "")
    assert out == snapshot("""\
a/agent.yaml:2: model: has to be 'provider:id', as anthropic:claude-opus-5, not 'x'
a/rules/r.md:2: warning: globs: '**/*.ts' was read as it is meant; put it in quotes: what begins with * is no YAML
1 agent: 1 error, 1 warning.
""")
    rows = json.loads(lamina("agent", "check", "a", "--json", cwd=work)[1])
    assert [(row["path"], row["line"], row["level"]) for row in rows] == [
        ("a/agent.yaml", 2, "error"),
        ("a/rules/r.md", 2, "warning"),
    ]


def test_warnings_fail_a_strict_check_alone(work: Path) -> None:
    write(work / "a", {"r.mdc": "No head."})
    assert lamina("agent", "check", "a", cwd=work)[0] == 0
    assert lamina("agent", "check", "a/r.mdc", "--strict", cwd=work)[0] == 1


def test_without_a_path_all_agents_are_checked(work: Path) -> None:
    assert "there is nothing to check here" in error("agent", "check", cwd=work)
    output("agent", "new", "ada", cwd=work)
    write(work, {"AGENTS.md": "Hello."})
    assert output("agent", "check", cwd=work) == "2 agents: no problems.\n"
    write(work / ".lamina/agents/empty", {"x": ""})
    code, out, _ = lamina("agent", "check", cwd=work)
    assert (code, out.splitlines()[-1]) == (1, "3 agents: 1 error.")
    assert out.startswith(".lamina/agents/empty:1: '.lamina/agents/empty' holds no agent")
    assert "there is no agent 'nobody'" in error("agent", "check", "nobody", cwd=work)


def test_an_agent_of_the_name_of_ones_own_is_listed_as_reached_by_path(work: Path) -> None:
    write(work / ".lamina/agents/mine", {"agent.yaml": "description: Theirs."})
    write(work / "../data/agents/mine", {"agent.yaml": "description: Mine."})
    shown = output("agent", "list", cwd=work)
    assert [line.split()[1:4] for line in shown.splitlines()[1:]] == [
        ["user", "0", "0"],
        ["workspace,", "by", "path"],
    ]
    assert "Mine." in output("agent", "show", "mine", cwd=work)
