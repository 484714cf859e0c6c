"""A default of an agent is changed in its file, and nothing else in it."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.adapters.agents.files import write
from tests.strategies import modest

from lamina.adapters.agents.agent_reader import read_agent
from lamina.adapters.agents.agent_yaml import write_skeleton
from lamina.adapters.agents.fields import UnreadableText
from lamina.adapters.agents.settings_edit import change_setting, set_value
from lamina.core.values.selection import preset
from lamina.errors import UsageError

OURS = """\
# Who answers.
name: harbour   # a comment
settings:
  # How much chance.
  temperature: 0.5  # warm
  max_tokens: 100
x-unknown: {kept: [1, 2]}

search: normal
"""


@pytest.mark.parametrize(
    ("text", "keys", "value", "after"),
    [
        ("a: 1\n", ("a",), 2, "a: 2\n"),
        ("a: 1  # one\nb: 2\n", ("a",), 2, "a: 2  # one\nb: 2\n"),
        ("a:\nb: 2\n", ("a",), "x: y", 'a: "x: y"\nb: 2\n'),
        ("a: 1", ("b",), True, "a: 1\nb: true\n"),
        ("", ("s", "t"), 0.3, "s:\n  t: 0.3\n"),
        ("s:\n    a: 1\n# end\n", ("s", "t"), 0.3, "s:\n    a: 1\n    t: 0.3\n# end\n"),
        ("s:  # none yet\nb: 1\n", ("s", "t"), 0.3, "s:  # none yet\n  t: 0.3\nb: 1\n"),
        ("s: null\n", ("s", "t"), 1, "s: \n  t: 1\n"),
        ("s: {a: 1}\n", ("s", "t"), 2, "s: {a: 1, t: 2}\n"),
        ("s: {}\n", ("s", "t"), 2, "s: {t: 2}\n"),
        ("s:\r\n  t: 1\r\nb: 1\r\n", ("s", "t"), 2, "s:\r\n  t: 2\r\nb: 1\r\n"),
        ("s:\n  t: '1'\n", ("s", "t"), None, "s:\n  t: null\n"),
        ("s:\n  a: |\n    x\nb: 1\n", ("s", "t"), 1, "s:\n  a: |\n    x\n  t: 1\nb: 1\n"),
    ],
)  # fmt: skip
def test_one_value_changes_and_every_other_character_stays(
    text: str, keys: tuple[str, ...], value: str | float | None, after: str
) -> None:
    assert set_value(text, keys, value) == after


@pytest.mark.parametrize(
    "text",
    [
        "s: 5\n",
        "[1, 2]\n",
        "s: [1]\n",
        "a: &x {t: 1}\ns: *x\n",
        "s:\n  t: &x 1\nb: *x\n",
        "s:\n  t: |\n    long\n",
        "s: {a: 1\n",
        "--- \na: 1\n---\nb: 1\n",
    ],
)
def test_what_cannot_be_changed_alone_is_refused(text: str) -> None:
    with pytest.raises(UnreadableText):
        set_value(text, ("s", "t"), 2)


NAMES = st.sampled_from(["a", "b", "settings", "x-y"])
VALUES = st.one_of(st.integers(0, 99), st.sampled_from(["x", "a: b", "# no", ""]), st.none())


@modest
@given(
    st.dictionaries(NAMES, st.one_of(VALUES, st.dictionaries(NAMES, VALUES, max_size=3))),
    st.booleans(),
    VALUES,
)
def test_whatever_the_file_holds_it_says_the_same_but_for_the_value(
    whole: dict[str, object], flow: bool, value: str | int | None
) -> None:
    import yaml

    text = yaml.safe_dump(whole, default_flow_style=flow, sort_keys=False)
    try:
        after = yaml.safe_load(set_value(text, ("settings", "t"), value))
    except UnreadableText:
        return
    inner = whole.get("settings")
    inside = inner if isinstance(inner, dict) else {}
    assert after == whole | {"settings": inside | {"t": value}}


def test_an_agents_file_keeps_its_comments_and_what_is_not_known(tmp_path: Path) -> None:
    write(tmp_path, {"agent.yaml": OURS})
    change_setting(tmp_path, None, "temperature", 0.3)
    change_setting(tmp_path, None, "max_requests", 7)
    change_setting(tmp_path, None, "model", "openai:gpt-5")
    text = (tmp_path / "agent.yaml").read_text("utf-8")
    expected = OURS.replace("temperature: 0.5", "temperature: 0.3")
    expected = expected.replace("max_tokens: 100\n", "max_tokens: 100\n  max_requests: 7\n")
    assert text == f'{expected}model: "openai:gpt-5"\n'
    agent = read_agent(tmp_path)
    assert agent.options == {"temperature": 0.3, "max_tokens": 100}
    assert agent.settings["max_requests"] == 7
    assert agent.model == "openai:gpt-5"


def test_a_new_agent_takes_every_setting(tmp_path: Path) -> None:
    folder = write_skeleton("harbour", tmp_path)
    before = (folder / "agent.yaml").read_text("utf-8")
    change_setting(folder, None, "top_p", 0.8)
    after = (folder / "agent.yaml").read_text("utf-8")
    assert set(after.splitlines()) - set(before.splitlines()) == {"  top_p: 0.8"}
    assert read_agent(folder).options == {"top_p": 0.8}


def test_a_file_of_teamspark_is_changed_in_its_own_words(tmp_path: Path) -> None:
    write(tmp_path, {"tsagent.yaml": "metadata:\n  name: x\nsettings:\n  topP: 0.5\n"})
    change_setting(tmp_path, None, "top_p", 0.9)
    change_setting(tmp_path, None, "max_requests", 5)
    text = (tmp_path / "tsagent.yaml").read_text("utf-8")
    assert text == "metadata:\n  name: x\nsettings:\n  topP: 0.9\n  maxChatTurns: 5\n"
    assert read_agent(tmp_path).settings["max_requests"] == 5
    with pytest.raises(UsageError, match="have no setting 'window'"):
        change_setting(tmp_path, None, "window", 5)


@pytest.mark.parametrize(
    ("files", "name", "value", "problem"),
    [
        ({"agent.yaml": "a: ["}, "temperature", 0.3, "cannot be changed"),
        ({"agent.yaml": b"name: \xff\n"}, "temperature", 0.3, "not UTF-8"),
        ({"agent.yaml": "name: x\n"}, "temperature", -1, "must be a number from 0 on"),
        ({"agent.yaml": "name: x\n"}, "web", "public", "for a person to say"),
        ({"agent.yaml": "name: x\n"}, "spend_unknown", "allow", "for a person to say"),
        ({"agent.yaml": "name: x\n"}, "ask_above_cost", 9.0, "for a person to say"),
        ({"agent.yaml": "name: x\n"}, "temprature", 1, "did you mean 'temperature'"),
        ({"tsagent.json": "{}"}, "temperature", 0.3, "is not YAML"),
        ({"AGENTS.md": "Be kind."}, "temperature", 0.3, "no settings of its own"),
    ],
)
def test_what_cannot_be_written_is_said_and_the_file_stays(
    files: dict[str, str | bytes], name: str, value: float | str, problem: str, tmp_path: Path
) -> None:
    write(tmp_path, files)
    with pytest.raises(UsageError, match=problem):
        change_setting(tmp_path, None, name, value)
    for path, content in files.items():
        data = content if isinstance(content, bytes) else content.encode()
        assert (tmp_path / path).read_bytes() == data


def test_a_file_that_leads_out_of_its_folder_is_not_written(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text("name: x\n", "utf-8")
    folder = tmp_path / "agent"
    folder.mkdir()
    (folder / "agent.yaml").symlink_to(outside)
    with pytest.raises(UsageError, match="cannot be changed"):
        change_setting(folder, None, "temperature", 0.3)
    assert outside.read_text("utf-8") == "name: x\n"


# -- searches, whole and by part -------------------------------------------------------------------


def searched(folder: Path, name: str = "guide_search") -> object:
    """How an agent's search is written in its file, and read from it."""
    return read_agent(folder).settings.get(name)


@pytest.mark.parametrize(
    ("text", "name", "value", "written"),
    [
        ("name: a\n", "guide_search", "conservative", 'search: "conservative"'),
        ("name: a\n", "guide_search.top_n", 9, "search: {top_n: 9}"),
        ("name: a\n", "tool_search", False, "tool_search: false"),
        (
            "search: aggressive # mine\n", "guide_search.top_n", 9,
            'search: {preset: "aggressive", top_n: 9} # mine',
        ),
        ("search: {top_n: 3}\n", "guide_search.top_k", 9, "search: {top_n: 3, top_k: 9}"),
        ("search: {top_n: 3}\n", "guide_search", "normal", 'search: "normal"'),
        ("search:\n  top_n: 3\n", "guide_search.top_n", 4, "search:\n  top_n: 4"),
        ("search:\n  top_n: 3\nname: a\n", "guide_search", "normal", 'search: "normal"\nname: a'),
        ("search: false\n", "guide_search.floor", 0.2, "search: {search: false, floor: 0.2}"),
        ("search:\n", "guide_search.top_n", 4, "search:\n  top_n: 4"),
        (
            "settings:\n  guide_search: normal\n", "guide_search.top_n", 4,
            'settings:\n  guide_search: {preset: "normal", top_n: 4}',
        ),
        ("tool_policy: sticky\n", "tool_policy", "exact", 'tool_policy: "exact"'),
        ("name: a\n", "tool_policy", "exact", 'settings:\n  tool_policy: "exact"'),
    ],
)  # fmt: skip
def test_a_search_is_written_where_it_stands_and_keeps_what_is_not_changed(
    tmp_path: Path, text: str, name: str, value: Any, written: str
) -> None:
    write(tmp_path, {"agent.yaml": text})
    change_setting(tmp_path, None, name, value)
    after = (tmp_path / "agent.yaml").read_text("utf-8")
    assert after.removeprefix("name: a\n").strip("\n") == written
    assert read_agent(tmp_path).problems == ()


def test_a_part_joins_the_preset_that_it_changes(tmp_path: Path) -> None:
    folder = write_skeleton("harbour", tmp_path)
    change_setting(folder, None, "guide_search", "conservative")
    change_setting(folder, None, "guide_search.top_n", 9)
    assert searched(folder) == msgspec.structs.asdict(replace(preset("conservative"), top_n=9))
    change_setting(folder, None, "guide_search", "aggressive")
    assert searched(folder) == msgspec.structs.asdict(preset("aggressive"))


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("guide_search", "wild", "has to be one of conservative, normal, aggressive, not 'wild'"),
        ("guide_search.topn", 3, "a search has no setting 'topn'; did you mean 'top_n'?"),
        ("guide_search.top_k", 0, "must be at least 1"),
        ("tool_search.floor", 3, "is a cosine similarity: from -1 to 1, not 3"),
        ("temperature", 9, "must be a number from 0 to 2, not 9"),
        ("max_tokens", 0, "must be at least 1, not 0"),
    ],
)
def test_what_no_search_or_model_could_take_is_refused_and_not_written(
    tmp_path: Path, name: str, value: Any, problem: str
) -> None:
    write(tmp_path, {"agent.yaml": "name: a\n"})
    with pytest.raises(UsageError, match=re.escape(problem)):
        change_setting(tmp_path, None, name, value)
    assert (tmp_path / "agent.yaml").read_text("utf-8") == "name: a\n"


def test_a_value_out_of_range_in_a_file_is_named_and_not_used(tmp_path: Path) -> None:
    text = "settings: {temperature: 9, max_tokens: 0}\nsearch: {top_k: 0, top_n: 2}\n"
    write(tmp_path, {"agent.yaml": text})
    agent = read_agent(tmp_path)
    assert (agent.options, agent.settings) == ({}, {"guide_search": {"top_n": 2}})
    assert [problem.line for problem in agent.problems] == [1, 1, 2]
