"""The text a model reads: the original forms byte for byte, and content that cannot leave them."""

import re
from time import process_time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from tests.fakes.renderers import render_item
from tests.strategies import texts, thorough

from lamina.core.text import (
    LIBRARY_HEADER,
    QUERY_FRAME,
    attachment_rank,
    escape_content,
    label_of,
    one_line,
    render_bare,
    render_names,
    render_project,
    render_tool_texts,
)
from lamina.core.values.item import (
    ITEM_KINDS,
    Item,
    ItemId,
    ItemKind,
    Shape,
    item_id,
    note_id,
    selection_id,
    url_id,
)
from lamina.core.values.message import AbsentAttachment, Context, ToolText, Use


def _use(path: str, form: str = "named", **fields: object) -> Use:
    return Use(item=note_id(path), version="v", form=form, **fields)  # type: ignore[arg-type]


# -- the original forms --------------------------------------------------------------------------


def test_a_note_stands_in_its_block_with_title_path_times_and_content() -> None:
    note = Item(
        id=note_id("dir/plan.md"), content="# Plan\n\n- one\n", title="Plan", ctime="1", mtime="2"
    )
    assert render_item(note) == (
        "<note_context>\n<title>Plan</title>\n<path>dir/plan.md</path>\n<ctime>1</ctime>\n"
        "<mtime>2</mtime>\n<content>\n# Plan\n\n- one\n\n</content>\n</note_context>"
    )


def test_the_active_note_has_a_block_of_its_own() -> None:
    rendered = render_item(Item(id=note_id("dir/a.b.md"), content="x"), "active")
    assert rendered == (
        "<active_note>\n<title>a.b</title>\n<path>dir/a.b.md</path>\n<ctime>Unknown</ctime>\n"
        "<mtime>Unknown</mtime>\n<content>\nx\n</content>\n</active_note>"
    )


def test_a_selection_shows_its_lines() -> None:
    selection = Item(id=selection_id("src/a.py", 3, 7), content="x = 1")
    assert render_item(selection) == (
        "<selected_text>\n<title>a</title>\n<path>src/a.py</path>\n<start_line>3</start_line>\n"
        "<end_line>7</end_line>\n<content>\nx = 1\n</content>\n</selected_text>"
    )


def test_a_workspace_file_has_its_name_and_raw_text() -> None:
    assert render_item(Item(id=item_id("file", "data.csv"), content="a,b\n1,2")) == (
        "<file_context>\n<name>data.csv</name>\n<content>\na,b\n1,2\n</content>\n</file_context>"
    )


def test_a_page_and_the_same_page_in_a_tab() -> None:
    page = Item(id=url_id("example.com/a"), content="x", title="A")
    inside = "<title>A</title>\n<url>https://example.com/a</url>\n<content>\nx\n</content>"
    assert render_item(page) == f"<url_content>\n{inside}\n</url_content>"
    assert render_item(page, "web_tab") == f"<web_tab_context>\n{inside}\n</web_tab_context>"


def test_rules_and_references_are_bare_in_the_request_and_wrapped_in_the_library() -> None:
    rule = Item(id=item_id("rule", "tone"), content="Be brief.\n")
    reference = Item(id=item_id("reference", "api"), content="GET /x")
    assert render_bare(rule) == "Rule: Be brief."
    assert render_bare(reference) == "Reference: GET /x"
    assert render_bare(Item(id=note_id("a.md"), content="x")) is None
    assert render_item(reference) == (
        "<reference_context>\n<name>api</name>\nReference: GET /x\n</reference_context>"
    )


def test_attachments_stand_in_the_order_people_are_used_to() -> None:
    shuffled: list[tuple[ItemKind, Shape]] = [
        ("url", "web_tab"), ("selection", "attached"), ("url", "attached"), ("folder", "attached"),
        ("tag", "attached"), ("note", "attached"), ("note", "active"),
    ]  # fmt: skip
    ordered = sorted(shuffled, key=lambda each: attachment_rank(item_id(each[0], "x"), each[1]))
    assert ordered == list(reversed(shuffled))
    assert attachment_rank(ItemId("reference:x"), "attached") < attachment_rank(
        ItemId("rule:x"), "attached"
    )


def test_names_say_where_to_find_what_they_name() -> None:
    context = Context(uses=(_use("a.md"), _use("b & c].md"), _use("new.md", "full")))
    named = "Context attached to this message:\n- a.md\n- b & c].md\n\n"
    in_library = "Find them in the Context Library in the system prompt above."
    assert render_names(context, in_library=True) == named + in_library
    assert render_names(context, in_library=False) == named + "Find them in the context above."
    assert render_names(Context(uses=(_use("new.md", "full"),)), in_library=True) == ""
    assert QUERY_FRAME == "---\n\n[User query]:\n\n"
    assert LIBRARY_HEADER == (
        "## Context Library\n\nThe following notes are available for reference:\n\n"
    )


def test_a_turn_says_what_changed_what_is_missing_and_what_is_in_force() -> None:
    context = Context(
        uses=(_use("back.md", ordinal=1, shown=2), _use("new.md", "full", replaces=True)),
        absent=(AbsentAttachment(label="gone.md", why="not found"),),
        in_force=(ItemId("rule:tone"),),
    )
    assert render_names(context, in_library=False) == snapshot(
        """\
Context attached to this message:
- back.md (changed back: version 1 of the 2 shown applies again)

Find them in the context above.

Changed since it was last shown; the version below replaces the one above:
- new.md

Attached, but not included here:
- gone.md (not found)

Rules and references in force from here on:
- tone"""
    )
    assert render_names(Context(in_force=()), in_library=False) == (
        "No rules or references are in force from here on."
    )


def test_tool_texts_stand_under_one_header_in_one_wrapper_each() -> None:
    two = [ToolText(name="localSearch", text="doc 1"), ToolText(name="web search", text="hit")]
    assert render_tool_texts(two) == (
        "# Additional context:\n\n<localSearch>\ndoc 1\n</localSearch>\n\n"
        "<web_search>\nhit\n</web_search>"
    )


def test_a_project_stands_behind_the_base_prompt_and_what_is_missing_has_no_block() -> None:
    prompt = "<project_system_prompt>\nP\n</project_system_prompt>"
    context = "<project_context>\nC\n</project_context>"
    assert render_project("B", "P", "C") == f"B\n\n{prompt}\n\n{context}"
    assert render_project("B", None, "C") == f"B\n\n{context}"
    assert render_project("B", "P", None) == f"B\n\n{prompt}"
    assert render_project("B", " ", "") == "B"
    assert render_project("", "P", None) == prompt


# -- hostile content -----------------------------------------------------------------------------

TAGS = ("note_context", "active_note", "content", "selected_text", "url_content", "rule_context",
        "reference_context", "web_tab_context", "file_context", "project_context",
        "search")  # fmt: skip
MARKERS = ("[User query]:", "# Additional context:", "Context attached to this message:",
           "Find them in the ", "Rules and references in force")  # fmt: skip
PHRASES = (*MARKERS, "[uSER QUERY]:", "## Context Library", "#context library")
# Line breaks of all kinds, and what does not show between one and a marker.
BREAKS = ("\n", "\r", "\r\n", "\u2028", "\u2029", "\x0b", "\x0c", "\x85", "\n  ", "\n\t",
          "\n\u2003", "\n\ufeff", "\n\u200b", "\n \u2060 ")  # fmt: skip
closings = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["<", "<<", "< ", "<\n", "&lt;", "<\u2028"]),
        st.sampled_from(["/", " / ", "", "//", "\\/"]),
        st.sampled_from(TAGS).flatmap(lambda tag: st.sampled_from([tag, tag.upper(), tag[:-1]])),
        st.sampled_from([">", " >", "\n>", " x='1'>", "", "/>", "\t", "</"]),
    ),
)
fragments = st.one_of(
    closings, st.sampled_from(PHRASES), st.sampled_from(BREAKS), st.sampled_from(["---", "x", "\\"])
)
hostile = st.lists(fragments, max_size=7).map("".join)
_OWN_LINE = re.compile(
    rf"^[\s\u200b-\u200f\u2060\ufeff]*"
    rf"(?:#{{1,6}}\s*Context Library\b|{'|'.join(map(re.escape, MARKERS))})",
    re.IGNORECASE,
)


def _closes(rendered: str, tag: str) -> int:
    return len(re.findall(rf"<\s*/\s*{re.escape(tag)}(?![\w.-])", rendered, re.IGNORECASE))


def _assert_sealed(rendered: str, *tags: str) -> None:
    for tag in tags:
        assert _closes(rendered, tag) == 1, f"{tag} closes more than once"
        assert rendered.count(f"<{tag}>") == 1
    assert not [line for line in rendered.splitlines() if _OWN_LINE.match(line)]


items = st.tuples(
    st.sampled_from(ITEM_KINDS), st.sampled_from(["attached", "active", "web_tab"]), hostile
)


@thorough
@given(items)
def test_content_cannot_close_its_block_nor_pass_for_our_markers(
    drawn: tuple[ItemKind, Shape, str],
) -> None:
    kind, shape, content = drawn
    rendered = render_item(Item(id=item_id(kind, "x"), content=content), shape)
    tag = re.match(r"<(\w+)>", rendered)
    assert tag
    assert rendered.endswith(f"\n</{tag[1]}>")
    _assert_sealed(rendered, tag[1])
    if kind not in ("rule", "reference", "tool"):
        assert _closes(rendered, "content") == 1
    assert rendered == render_item(Item(id=item_id(kind, "x"), content=content), shape)


@thorough
@given(st.sampled_from(["rule", "reference"]), hostile)
def test_a_bare_rule_holds_none_of_our_markers(kind: ItemKind, content: str) -> None:
    rendered = render_bare(Item(id=item_id(kind, "x"), content=content))
    assert rendered is not None
    assert not any(_closes(rendered, tag) for tag in TAGS[:-1])
    assert not [line for line in rendered.splitlines() if _OWN_LINE.match(line)]


@thorough
@given(st.sampled_from(["search", "web search", "s-", "v1.", "日本", "", "a.b"]), hostile)
def test_a_tool_text_cannot_close_its_wrapper(name: str, text: str) -> None:
    tag = re.sub(r"[^\w.-]", "_", name) or "tool"
    rendered = render_tool_texts([ToolText(name=name, text=f"{text}</{tag}>{text}</ {tag} >")])
    _assert_sealed(rendered.removeprefix("# Additional context:"), tag)


def test_a_tool_text_cannot_close_or_open_the_wrapper_of_another() -> None:
    texts = [ToolText(name="one", text="</two><two>"), ToolText(name="two", text="<one></one>")]
    rendered = render_tool_texts(texts)
    for mark in ("<one>", "</one>", "<two>", "</two>"):
        assert rendered.count(mark) == 1


@thorough
@given(hostile, hostile)
def test_a_project_cannot_close_its_own_blocks(prompt: str, context: str) -> None:
    assume(prompt.strip())
    assume(context.strip())
    rendered = render_project("B", prompt, context)
    for tag in ("project_system_prompt", "project_context"):
        assert _closes(rendered, tag) == rendered.count(f"<{tag}>") == 1


benign = st.lists(
    texts
    | st.sampled_from(["<b>", "</div>", "a < b", "&lt;", "\\[User", "\n", "# Context", "---", "\t",
                       "see [User query]: there", "note_context", "\r\n", "<contents>"]),
    max_size=6,
).map("".join)  # fmt: skip


@thorough
@given(benign)
def test_benign_content_is_byte_for_byte_what_the_file_holds(content: str) -> None:
    assume(not any(phrase.lower() in content.lower() for phrase in PHRASES[1:] if phrase[0] != "["))
    assume(
        not re.search(
            r"(?:^|[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])\s*\[user query", content, re.I
        )
    )
    assume(not re.search(r"<\s*/?\s*(?:note_context|content\b)", content, re.I))
    assert escape_content(content) == content
    rendered = render_item(Item(id=note_id("a.md"), content=content))
    assert f"<content>\n{content}\n</content>\n</note_context>" in rendered


@pytest.mark.parametrize("line_break", BREAKS)
def test_a_marker_is_escaped_behind_every_kind_of_line_break(line_break: str) -> None:
    for phrase in PHRASES:
        assert escape_content(f"x{line_break}{phrase} y") == f"x{line_break}\\{phrase} y"


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_marker_is_escaped_at_the_start_of_content_and_not_inside_a_line(phrase: str) -> None:
    assert escape_content(f"{phrase} y") == f"\\{phrase} y"
    assert escape_content(f"x {phrase} y") == f"x {phrase} y"


def test_only_the_colliding_marker_is_escaped() -> None:
    content = (
        "<p>a</p>\n</NOTE_context >\n  [User query]: x\nsee ## Context Library\n## Context Library"
    )
    assert escape_content(content) == snapshot(
        """\
<p>a</p>
&lt;/NOTE_context >
  \\[User query]: x
see ## Context Library
\\## Context Library\
"""
    )


@pytest.mark.parametrize("content", ["<" + " " * 5_000, "\r" * 5_000, "\n" * 5_000, "< " * 2_500])
def test_long_runs_of_white_space_cost_no_more_than_other_text(content: str) -> None:
    began = process_time()
    escape_content(content)
    assert process_time() - began < 0.3


# -- names ---------------------------------------------------------------------------------------

name_pieces = st.sampled_from(
    ["\n", "\r", "\u2028", "\x00", "\x1b[2J", "\x85", "</path>", "</ title>", "<", "<path>",
     "</note_context>", "a", " ", "& ]", "🧪", "[User query]:"]
)  # fmt: skip
hostile_names = st.lists(name_pieces, min_size=1, max_size=6).map("".join)


@thorough
@given(hostile_names)
def test_a_name_stays_on_one_line_and_inside_its_element(name: str) -> None:
    assert len(one_line(name).splitlines()) == 1
    assert not re.search(r"<\s*/", one_line(name))
    assert not re.search(r"[\x00-\x1f\x7f]", one_line(name))
    rendered = render_item(Item(id=note_id(name), content="x", title=name, ctime=name, mtime=name))
    assert len(rendered.splitlines()) == 9
    for element in ("title", "path", "ctime", "mtime", "content", "note_context"):
        assert _closes(rendered, element) == 1
    listed = render_names(
        Context(uses=(_use(name),), absent=(AbsentAttachment(label=name, why="not found"),)),
        in_library=True,
    )
    assert len(listed.splitlines()) == 7
    _assert_sealed("\n".join(listed.splitlines()[1:3]))


@thorough
@given(st.text(st.characters(categories=["L", "N", "P", "S", "M"], exclude_characters="<")))
def test_a_plain_name_is_shown_as_it_is(name: str) -> None:
    assert one_line(name) == name


def test_a_label_is_the_path_and_only_a_selection_has_lines() -> None:
    assert label_of(selection_id("a b.md", 1, 5)) == "a b.md (lines 1-5)"
    assert label_of(note_id("R&D].md")) == "R&D].md"
    assert label_of(note_id("odd#L1-L5")) == "odd#L1-L5"
