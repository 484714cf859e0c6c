"""Queries as people write them for Dataview, over notes with fields, lists and tasks."""

from datetime import datetime

from inline_snapshot import snapshot

from lamina.core.notes.note_reader import read_note
from lamina.core.notes.query.note_index import QueryNotes
from lamina.core.notes.query.rendered_query import render_query, run_inline

NOW = datetime(2026, 1, 31, 12, 30)
NOTES = tuple(
    read_note(path, text.encode(), ctime=1_700_000_000, mtime=1_769_800_000)
    for path, text in {
        "work/Harbour.md": """---
status: draft
due: 2026-03-01
team: [Ann, Bo]
lead: "[[Ann]]"
cost: 120
---
#project/water
**Time Spent**:: 2h 30m
Rated [rating:: 9] (why:: because), see [[2026-01-30]].

## Open
- [ ] Call the pilot [due:: 2026-02-01] #urgent
    - [x] find the number ✅ 2026-01-05
    - their [phone:: 12 34]
- [ ] Paint
## Done
- [x] Buy rope
""",
        "work/Lock.md": "---\nstatus: done\ncost: 80\n---\n#project\nteam:: Bo\n[[Harbour]]\n",
        "people/Ann.md": "born:: 1950\nknows:: [[Bo]], [[Cy]]\n",
        "2026-01-30.md": "mood:: 3\n- [ ] Feed the cat\n",
        "2026-01-31.md": "mood:: 5\nslept:: 7 hours\n",
    }.items()
)


def run(query: str, at: str = "work/Harbour.md") -> str:
    return render_query(query, NOTES, at, NOW)


def test_inline_fields_are_data_of_their_kinds() -> None:
    assert run("TABLE time-spent, rating, why, phone, lead.born WHERE rating") == snapshot(
        """\
| file | time-spent | rating | why | phone | lead.born |
|---|---|---|---|---|---|
| work/Harbour.md | 2 hours, 30 minutes | 9 | because | 12 34 | 1950 |\
"""
    )
    assert run("LIST knows WHERE contains(knows, [[Bo]])") == "- people/Ann.md: [[Bo]], [[Cy]]"
    assert run("LIST slept * 2 WHERE slept > dur(6 h)") == "- 2026-01-31.md: 14 hours"


def test_flatten_makes_a_row_of_every_member() -> None:
    assert run("TABLE WITHOUT ID file.name, team FROM #project FLATTEN team SORT team") == snapshot(
        """\
| file.name | team |
|---|---|
| Harbour | Ann |
| Harbour | Bo |
| Lock | Bo |\
"""
    )
    assert run(
        "TABLE rows.file.link AS notes FROM #project FLATTEN team GROUP BY team"
    ) == snapshot(
        """\
| team | notes |
|---|---|
| Ann | [[work/Harbour.md]] |
| Bo | [[work/Harbour.md]], [[work/Lock.md]] |\
"""
    )
    assert run('LIST price FROM "work" FLATTEN "€" + cost AS price WHERE cost > 100') == (
        "- work/Harbour.md: €120"
    )


def test_tasks_come_with_what_stands_below_them() -> None:
    assert run("TASK") == snapshot(
        """\
- 2026-01-30.md
  - [ ] Feed the cat
- work/Harbour.md
  - [ ] Call the pilot [due:: 2026-02-01] #urgent
    - [x] find the number ✅ 2026-01-05
    - their [phone:: 12 34]
  - [ ] Paint
  - [x] Buy rope\
"""
    )


def test_tasks_are_chosen_by_their_own_fields_and_those_of_their_notes() -> None:
    assert run('TASK WHERE !completed AND contains(tags, "#urgent")').splitlines()[1] == (
        "  - [ ] Call the pilot [due:: 2026-02-01] #urgent"
    )
    assert run("TASK WHERE due = date(2026-02-01)").count("\n") == 3
    assert run("TASK WHERE completion and completion < date(today)") == (
        "- work/Harbour.md\n  - [x] find the number ✅ 2026-01-05"
    )
    assert run('TASK WHERE status = " " AND mood') == "- 2026-01-30.md\n  - [ ] Feed the cat"
    assert run("TASK WHERE fullyCompleted AND !parent") == "- work/Harbour.md\n  - [x] Buy rope"
    assert run("TASK WHERE none(children) AND nothing") == "No tasks fit this query."


def test_tasks_are_grouped_by_anything() -> None:
    assert run("TASK WHERE !completed GROUP BY file.link") == snapshot(
        """\
- [[2026-01-30.md]] (1)
  - [ ] Feed the cat
- [[work/Harbour.md]] (2)
  - [ ] Call the pilot [due:: 2026-02-01] #urgent
    - [x] find the number ✅ 2026-01-05
    - their [phone:: 12 34]
  - [ ] Paint\
"""
    )
    assert run("TASK GROUP BY meta(section).subpath AS part").splitlines()[::2][:2] == [
        "- (none) (1)", "- Done (1)",
    ]  # fmt: skip


def test_list_items_are_rows_like_any_other() -> None:
    query = """
        TABLE WITHOUT ID L.text AS item, L.section AS where, L.phone
        FROM "work" FLATTEN file.lists AS L WHERE !L.task
    """
    assert run(query).splitlines()[2:] == [
        "| their [phone:: 12 34] | [[work/Harbour.md#Open]] | 12 34 |"
    ]
    assert run("LIST length(filter(file.tasks, (t) => t.completed)) FROM #project") == (
        "- work/Harbour.md: 2\n- work/Lock.md: 0"
    )
    assert run("LIST file.tasks.text WHERE any(file.tasks, (t) => t.due)") == (
        "- work/Harbour.md: Call the pilot [due:: 2026-02-01] #urgent, "
        "find the number ✅ 2026-01-05, Paint, Buy rope"
    )


def test_a_calendar_is_a_list_by_day() -> None:
    assert run("CALENDAR file.day WHERE file.day or cost") == snapshot(
        """\
- 2026-01-30
  - 2026-01-30.md
- 2026-01-31
  - 2026-01-31.md
- no day (2)\
"""
    )


def test_links_lead_to_notes_and_back() -> None:
    assert run("LIST FROM outgoing([[]])") == "- 2026-01-30.md\n- people/Ann.md"
    assert run("LIST FROM [[]]") == "- work/Lock.md"
    assert run("LIST file.inlinks WHERE file.inlinks") == (
        "- 2026-01-30.md: [[work/Harbour.md]]\n- people/Ann.md: [[work/Harbour.md]]\n"
        "- work/Harbour.md: [[work/Lock.md]]"
    )
    assert run("LIST WHERE lead = [[people/Ann]]") == "- work/Harbour.md"
    assert run('LIST "by " + lead WHERE lead') == "- work/Harbour.md: by [[people/Ann.md|Ann]]"


def test_the_clock_is_the_one_that_is_given() -> None:
    assert run("LIST WHERE file.day = date(today)") == "- 2026-01-31.md"
    assert run("LIST due - date(today) WHERE due") == "- work/Harbour.md: 1 month, 1 day"
    assert run('LIST dateformat(date(now), "HH:mm") LIMIT 1').startswith("- 2026-01-30.md: 12:30\n")


def test_this_is_the_note_that_holds_the_query() -> None:
    assert run("LIST WHERE file = this.file") == "- work/Harbour.md"
    assert run("LIST WHERE contains(this.team, team)", at="work/Lock.md") == (
        "- work/Harbour.md\n- work/Lock.md"
    )
    assert run("LIST WHERE file.day < this.file.day SORT file.day DESC", at="2026-01-31.md") == (
        "- people/Ann.md\n- work/Harbour.md\n- work/Lock.md"
    ).replace("- people", "- 2026-01-30.md\n- people")


def test_commands_are_taken_in_the_order_in_which_they_are_written() -> None:
    assert run("LIST mood LIMIT 2 SORT mood DESC").splitlines()[:2] == [
        "- 2026-01-31.md: 5", "- 2026-01-30.md: 3",
    ]  # fmt: skip
    assert run("LIST cost WHERE cost SORT cost LIMIT 1 WHERE cost > 100") == (
        "No notes fit this query."
    )


def test_a_row_without_a_value_is_left_out_and_the_result_says_so() -> None:
    assert run("LIST cost + 1 FROM #project or [[Ann]]") == (
        "- work/Harbour.md: 121\n- work/Lock.md: 81"
    )
    assert run("LIST cost * 2 WHERE cost or mood") == (
        "- work/Harbour.md: 240\n- work/Lock.md: 160\n\n"
        "(2 rows were left out at LIST: null * number has no value)"
    )


def test_queries_within_sentences_have_a_value_each() -> None:
    text = "= this.cost + 1\n= [[Ann]].born\n= nope(1)\n= this.nothing"
    assert run_inline(text, QueryNotes(NOTES), "work/Harbour.md", NOW).text == snapshot(
        """\
- `= this.cost + 1`: 121
- `= [[Ann]].born`: 1950
- `= nope(1)`: (left out: query, line 1, column 3: there is no function 'nope')
- `= this.nothing`\
"""
    )


def test_names_with_blanks_go_by_their_plain_form_or_in_brackets() -> None:
    assert run("LIST time-spent WHERE time-spent") == run(
        'LIST row["Time Spent"] WHERE row["Time Spent"]'
    )


def test_a_link_whose_label_stands_first_is_a_link_to_the_note_it_names() -> None:
    notes = tuple(
        read_note(path, text.encode())
        for path, text in {
            "task.md": "# Task\n\n## head\n\n## sub\n",
            "a.md": "[[My task|task]]",
            "b.md": "![[My task|task]]",
            "c.md": "[[My task|task#sub]]",
            "d.md": "[[nothing|neither]]",
            "e.md": "![[task#head:#sub]]",
        }.items()
    )
    assert render_query("LIST FROM [[task]]", notes, "x.md", NOW) == snapshot(
        """\
- a.md
- b.md
- c.md
- e.md\
"""
    )
    links = {page.path: page.file["outlinks"] for page in QueryNotes(notes).pages}
    assert [(link.path, link.subpath) for path in "abcde" for link in links[f"{path}.md"]] == [
        ("task.md", ""), ("task.md", ""), ("task.md", "sub"), ("nothing", ""), ("task.md", "head"),
    ]  # fmt: skip
