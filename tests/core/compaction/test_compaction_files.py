"""Which files a conversation read and modified."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.compaction.talk import answer, result, step, user
from tests.strategies import json_values, texts, thorough

from lamina.core.codec import canonical_bytes
from lamina.core.compaction.touched_files import TouchedFiles, merge_files, touched_files
from lamina.core.values.item import ItemId, note_id, selection_id
from lamina.core.values.message import Message, ToolCall

PATCH = """\
*** Begin Patch
*** Update File: src/a.py
@@
-*** Update File: no.py
+x
*** Add File: b.py
+y
*** Delete File: old name.py
*** Update File: c.py
*** Move to: d.py
*** End Patch
"""


def called(name: str, **arguments: Any) -> TouchedFiles:
    return touched_files([step("", "1", name, **arguments)])


@pytest.mark.parametrize(
    "name",
    [
        "read", "read_file", "view", "cat", "open_file", "Read", "ReadFile", "readFile",
        "read-file", "fs__read_file", "mcp__fs__read_file", "mcp__my_server__read_file",
        "functions.read_file", "fs/read",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "key",
    ["path", "file_path", "filename", "file", "target_file", "notebook_path", "filePath"],
)
def test_a_tool_that_reads_is_known_by_its_name_and_its_file_by_the_key(
    name: str, key: str
) -> None:
    assert called(name, **{key: "a.py", "limit": 3}) == TouchedFiles(read=("a.py",))


@pytest.mark.parametrize(
    "name",
    [
        "write", "write_file", "edit", "edit_file", "str_replace", "create_file", "multi_edit",
        "MultiEdit", "NotebookEdit", "rm", "delete", "fs__write_file", "mcp__fs__edit",
    ],
)  # fmt: skip
def test_a_tool_that_changes_files_is_known_by_its_name(name: str) -> None:
    assert called(name, path="a.py") == TouchedFiles(modified=("a.py",))


@pytest.mark.parametrize("name", ["str_replace_based_edit_tool", "str_replace_editor"])
def test_an_editor_reads_or_changes_by_its_command(name: str) -> None:
    assert called(name, command="view", path="a.py") == TouchedFiles(read=("a.py",))
    for command in ("create", "str_replace", "insert", ["view"], None):
        assert called(name, command=command, path="a.py") == TouchedFiles(modified=("a.py",))


@pytest.mark.parametrize("key", ["input", "patch"])
def test_a_patch_names_its_files_inside(key: str) -> None:
    expected = ("src/a.py", "b.py", "old name.py", "c.py", "d.py")
    assert called("apply_patch", **{key: PATCH}) == TouchedFiles(modified=expected)
    assert called("apply_patch", **{key: PATCH.replace("\n", "\r\n")}).modified == expected


def test_a_move_changes_both_ends_and_a_copy_only_reads_its_source() -> None:
    assert called("mv", source="a.py", destination="b.py") == TouchedFiles(
        modified=("a.py", "b.py")
    )
    assert called("rename", old_path="a", new_path="b") == TouchedFiles(modified=("a", "b"))
    assert called("move", path="a", to="b") == TouchedFiles(modified=("a", "b"))
    assert called("copy", src="a", dst="b") == TouchedFiles(read=("a",), modified=("b",))


def test_a_call_may_name_several_files() -> None:
    assert called("read_multiple_files", paths=["a", "b", 3, ""]) == TouchedFiles(read=("a", "b"))
    assert called("edit", files=[{"path": "a"}, {"file_path": "b"}, {}]).modified == ("a", "b")


def test_one_file_has_one_spelling() -> None:
    assert called("read_multiple_files", paths=["./a", "a", " a ", "././/a"]).read == ("a",)


def test_other_tools_and_arguments_that_cannot_be_read_are_passed_over() -> None:
    assert called("search", path="a.py") == TouchedFiles()
    assert called("read_file", path=7, file=None) == TouchedFiles()
    for arguments in ("", "{", "[]", '"a.py"', "null", '{"path": "\ud800'):
        call = ToolCall(id="1", name="read_file", arguments=arguments)
        assert touched_files([Message(role="assistant", blocks=(call,))]) == TouchedFiles()


def test_what_was_attached_was_read_if_it_is_a_file() -> None:
    items = (
        note_id("notes/a.md"),
        selection_id("b.py", 1, 9),
        ItemId("file:c"),
        ItemId("pdf:d.pdf"),
        ItemId("query:e.md#0123456789abcdef"),
        ItemId("rule:tone"),
        ItemId("url:https://example.com/x"),
        ItemId("folder:src"),
        ItemId("tag:#x"),
    )
    assert touched_files([user("Q", *items)]).read == ("notes/a.md", "b.py", "c", "d.pdf", "e.md")


def test_a_file_that_was_modified_is_not_listed_as_read() -> None:
    talk = [
        user("Q", note_id("b")),
        step("", "1", "read", path="a"),
        step("", "2", "edit", path="b"),
        step("", "3", "read", path="c"),
        step("", "4", "edit", path="a"),
        answer(),
    ]
    assert touched_files(talk) == TouchedFiles(read=("c",), modified=("b", "a"))


def test_a_call_that_failed_neither_read_nor_modified_anything() -> None:
    talk = [
        step("", "1", "edit", path="a"),
        result("1", "edit", "no match", is_error=True),
        step("", "1", "edit", path="b"),
        result("1", "edit"),
    ]
    assert touched_files(talk) == TouchedFiles(modified=("b",))


def test_files_of_two_parts_merge_in_order_of_first_appearance() -> None:
    first = TouchedFiles(read=("a", "b"), modified=("m",))
    second = TouchedFiles(read=("b", "m", "c"), modified=("a", "n"))
    assert merge_files(first, second) == TouchedFiles(read=("b", "c"), modified=("m", "a", "n"))
    assert merge_files(first, TouchedFiles()) == first == merge_files(TouchedFiles(), first)


names = st.sampled_from(["read", "edit", "mv", "apply_patch", "str_replace_editor", "cp"])
keys = st.sampled_from(["path", "paths", "files", "input", "to", "command"]) | texts


@thorough
@given(names, st.dictionaries(keys, json_values, max_size=4))
def test_no_arguments_are_too_odd(name: str, arguments: dict[str, Any]) -> None:
    call = ToolCall(id="1", name=name, arguments=canonical_bytes(arguments).decode())
    files = touched_files([Message(role="assistant", blocks=(call,))])
    assert not set(files.read) & set(files.modified)
    assert all(path.strip() for path in (*files.read, *files.modified))


@thorough
@given(st.lists(st.tuples(names, st.sampled_from("abc")), max_size=6), st.integers(0, 6))
def test_a_conversation_has_the_files_of_its_parts(pairs: list[tuple[str, str]], cut: int) -> None:
    talk = [step("", str(n), name, path=path) for n, (name, path) in enumerate(pairs)]
    assert merge_files(touched_files(talk[:cut]), touched_files(talk[cut:])) == touched_files(talk)
