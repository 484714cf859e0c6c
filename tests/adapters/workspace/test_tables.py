"""Tables attached from a folder: what a model reads of them, and what is no table after all."""

import csv
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.adapters.workspace.test_gatherer import Vault, vault
from tests.fakes.renderers import render_item
from tests.strategies import thorough

from lamina.adapters.workspace.item_reader import READERS
from lamina.adapters.workspace.table import MAX_CHARACTERS, find_layout
from lamina.core.values.item import LoadedItem

__all__ = ["vault"]

SALES = "date,region,units\n2026-01-01,north,3\n2026-01-02,south,5\n"


def read(text: str, path: str = "sales.csv") -> LoadedItem:
    return READERS["table"](path, text.encode())


def large(rows: int = 20_000) -> str:
    return "id,value\n" + "".join(f"{row},{row * row}\n" for row in range(rows))


def test_a_table_says_its_size_and_reads_as_its_file_does(vault: Vault) -> None:
    vault.put("sales.csv", SALES)
    reading = vault.one("sales.csv")
    assert reading.warnings == ()
    assert render_item(reading.item) == (
        "<table_context>\n<title>sales: 2 rows below the header, 3 columns</title>\n"
        f"<path>sales.csv</path>\n<content>\n{SALES}\n</content>\n</table_context>"
    )


@pytest.mark.parametrize(
    ("path", "text", "size"),
    [
        ("a.csv", "a;b\n1,5;2\n", (1, 2)),
        ("a.csv", "a|b|c\n1|2|3\n", (1, 3)),
        ("a.tsv", "a, b\tc\n1, 2\t3\n", (1, 2)),
        ("a.tsv", "a,b,c\n1,2,3\n", (1, 3)),
        ("a.csv", "\ufeffa,b\r\n1,2\r\n", (1, 2)),
        ("a.csv", 'a,b\n"one, two","three\nfour"\n5,6\n', (2, 2)),
        ("a.csv", "a,b\n\n1,2\n\n\n3,4", (2, 2)),
        ("a.csv", "a,b\n", (0, 2)),
    ],
)
def test_separators_quotes_marks_and_blank_lines_are_understood(
    path: str, text: str, size: tuple[int, int]
) -> None:
    reading = read(text, path)
    rows, columns = size
    assert reading.item.id == f"table:{path}"
    assert reading.item.content == text
    assert f" {rows} row{'s' * (rows != 1)} below the header, {columns} col" in reading.item.title


def test_a_table_with_uneven_rows_says_how_many(vault: Vault) -> None:
    vault.put("a.csv", "a,b\n1,2\n3\n4,5\n6,7,8\n")
    assert vault.one("a.csv").item.title.endswith("; 2 rows with more or fewer values")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "one column\n1\n2\n",
        "Dear all,\nthis is a letter, not a table, as you see,\nis it?\nNo.\n",
        'a,b\n"never closed,2\n',
        'a,b\n"closed"too early,2\n',
        f"a,b\n1,{'x' * 200_000}\n",
    ],
)
def test_what_is_no_table_is_read_as_a_text_and_says_so(text: str) -> None:
    reading = read(text)
    assert (reading.item.id, reading.item.content) == ("file:sales.csv", text)
    (warning,) = reading.warnings
    assert "sales.csv is not a table" in warning


def test_what_is_not_text_is_refused_as_any_file_is(vault: Vault) -> None:
    vault.put("a.csv", b"PK\x03\x04\0\0")
    assert vault.refused("a.csv").reason == "unreadable"


def test_a_large_table_keeps_its_header_its_first_and_its_last_rows(vault: Vault) -> None:
    text = large()
    vault.put("big.csv", text)
    reading = vault.one("big.csv")
    content = reading.item.content
    assert len(content) < MAX_CHARACTERS + 200 < len(text)
    assert content.startswith("id,value\n0,0\n")
    assert content.endswith(f"\n19999,{19999**2}\n")
    assert "big: 20,000 rows below the header, 2 columns" in reading.item.title
    before, _, after = content.partition("[... ")
    assert text.startswith(before)
    assert text.endswith(after[after.index("\n") + 1 :])
    left_out = 20_000 - content.count("\n") + 2
    assert f"{left_out:,} of 20,000 rows are left out here" in after
    assert "attach big.csv#L" in reading.warnings[0]
    assert "file:big.csv for all" in reading.warnings[0]


def test_the_rows_that_are_left_out_are_the_lines_that_the_notice_names(vault: Vault) -> None:
    text = large()
    vault.put("big.csv", text)
    reading = vault.one("big.csv")
    reference = reading.warnings[0].partition("attach ")[2].partition(" ")[0]
    middle = vault.one(reference).item.content
    before, _, after = reading.item.content.partition("[... ")
    assert before + middle + "\n" + after[after.index("\n") + 1 :] == text


def test_a_secret_that_a_cut_goes_through_is_judged_in_the_whole_file(vault: Vault) -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 2_000
    text = large(4_000) + f"{key}-----END PRIVATE KEY-----\n" + large(15_000)[9:]
    vault.put("big.csv", text)
    reading = vault.one("big.csv")
    assert reading.item.kind == "table"
    assert "BEGIN PRIVATE" in reading.item.content
    assert "END PRIVATE" not in reading.item.content
    assert reading.excerpt is not None
    assert reading.excerpt.secrets
    assert "MIIE" not in reading.excerpt.safe


def test_lines_of_a_table_come_with_its_header_and_stay_as_they_are(vault: Vault) -> None:
    vault.put("sales.csv", SALES)
    lines = vault.one("sales.csv#L3").item
    assert lines.title == "sales: date,region,units"
    assert lines.content == "2026-01-02,south,5"
    assert vault.one("sales.csv#L1-L2").item.title == "sales"


def test_an_id_asks_for_the_plain_file(vault: Vault) -> None:
    vault.put("big.csv", large())
    plain = vault.one("file:big.csv").item
    assert (plain.id, plain.content) == ("file:big.csv", large())
    assert vault.one("table:big.csv").item.id == "table:big.csv"


def test_a_folder_brings_its_tables_along(vault: Vault) -> None:
    vault.put("data/sales.csv", SALES)
    assert vault.ids("data/") == ["folder:data", "table:data/sales.csv"]


cells = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from('",;|\t\n'))


@thorough
@given(st.integers(2, 5).flatmap(lambda n: st.lists(st.lists(cells, min_size=n, max_size=n))))
def test_rows_that_were_written_as_csv_are_counted(rows: list[list[str]]) -> None:
    out = StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    layout = find_layout(out.getvalue())
    if rows:
        assert layout is not None
        assert (layout.rows + 1, layout.columns) == (len(rows), len(rows[0]))
        assert layout.uneven == 0
        assert layout.starts[-1][0] == len(out.getvalue())
