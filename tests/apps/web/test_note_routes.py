"""Notes over HTTP: searched, read, checked, completed, indexed; files through the one door."""

import os
from pathlib import Path
from time import perf_counter

from tests.apps.web.served_house import Json, ServedHouse, read_events, refused, told
from tests.apps.web.test_request_routes import write_agent

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
MAP = """\
---
aliases: [chart]
tags: [sea/chart]
---
# Map

See [[tides#Berths]] and [[nowhere]], and ![[sign.png]].

## North

Text.
"""


def test_passages_are_found_with_their_places(house: ServedHouse) -> None:
    found = house.get(rest="/notes", q="how many berths has the quay")
    assert found["searched"] == 2
    assert (found["by_meaning"], found["method"].partition(":")[0]) == (False, "by words alone")
    hit = found["hits"][0]
    assert (hit["path"], hit["heading"]) == ("sea/tides.md", "Tides > Berths")
    assert hit["place"] == f"sea/tides.md#L{hit['start']}-L{hit['end']}"
    assert "nine" in hit["text"]
    # What was found can be attached as it is.
    session = house.begin()
    house.ask(session, "How many?", attach=[hit["place"]])
    items = house.get(session, "/context/last")["items"]
    assert [item["item"] for item in items] == [f"selection:{hit['place']}"]


def test_a_search_keeps_to_its_folder_its_tag_and_its_day(house: ServedHouse) -> None:
    (house.folder / "map.md").write_text(MAP, "utf-8")
    os.utime(house.folder / "plan.md", (1_000_000_000, 1_000_000_000))

    def paths(**query: str) -> set[str]:
        return {hit["path"] for hit in house.get(rest="/notes", **query)["hits"]}

    assert paths() == {"map.md", "plan.md", "sea/tides.md"}
    assert paths(**{"in": "sea"}) == {"sea/tides.md"}
    assert paths(tag="sea") == {"map.md"}
    assert paths(since="2020-01-01") == {"map.md", "sea/tides.md"}
    assert paths(q="pier", **{"in": "sea"}) == set()
    assert refused(house.client.get(house.place(rest="/notes"), params={"since": "soon"})) == (
        400, "usage",
    )  # fmt: skip
    wrong = house.client.get(house.place(rest="/notes"), params={"limit": "many"})
    assert refused(wrong) == (422, "invalid")


def test_a_note_has_its_headings_links_and_what_links_to_it(house: ServedHouse) -> None:
    (house.folder / "map.md").write_text(MAP, "utf-8")
    (house.folder / "sign.png").write_bytes(PNG)
    page: Json = house.get(rest="/notes/map.md")
    assert page["text"] == MAP
    assert [(h["level"], h["text"], h["line"]) for h in page["headings"]] == [
        (1, "Map", 5), (2, "North", 9),
    ]  # fmt: skip
    links = {link["link"]: link for link in page["links"]}
    assert links["tides#Berths"]["path"] == "sea/tides.md"
    assert links["nowhere"]["path"] == ""
    assert "not in the workspace" in links["nowhere"]["problem"]
    assert links["sign.png"]["is_embed"]
    assert (page["tags"], page["aliases"]) == (["sea/chart"], ["chart"])
    tides = house.get(rest="/notes/sea/tides.md")
    assert [link["path"] for link in tides["backlinks"]] == ["map.md"]
    # A change is seen at once.
    (house.folder / "map.md").write_text("# Map\n", "utf-8")
    assert house.get(rest="/notes/sea/tides.md")["backlinks"] == []


def test_links_to_nowhere_are_found(house: ServedHouse) -> None:
    (house.folder / "map.md").write_text(MAP, "utf-8")
    check = house.get(rest="/notes-check")
    assert check["notes"] == 3
    wrong = {(problem["path"], problem["what"]) for problem in check["problems"]}
    assert ("map.md", "broken link") in wrong
    assert sum(check["counts"].values()) == len(check["problems"]) + len(check["decided"])


def test_nothing_outside_of_the_folder_is_read(house: ServedHouse, tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("nobody's", "utf-8")
    (house.folder / "out.md").symlink_to(secret)
    (house.folder / "out").symlink_to(tmp_path)
    (house.folder / ".env").write_text("KEY=nobody's", "utf-8")
    for path in (
        "../secret.md", "%2e%2e%2fsecret.md", "sea/..%2f..%2fsecret.md", "out.md", "out/secret.md",
        ".env", ".lamina%2fx", "%2fetc%2fpasswd", "//etc/passwd", "a%00.md", "nowhere.md", "sea",
        "%5c..%5csecret.md", "a" * 6_000, "%ff.md",
    ):  # fmt: skip
        for kind in ("notes", "files"):
            answer = house.client.get(house.place(rest=f"/{kind}/{path}"))
            assert answer.status_code in (400, 404), (kind, path, answer.status_code)
            assert "nobody's" not in answer.text
    assert house.client.get(house.place(rest="/notes/plan.md")).status_code == 200


def test_pictures_are_shown_and_all_else_is_saved(house: ServedHouse) -> None:
    files = {
        "sign.png": (PNG, "image/png", "inline"),
        "lies.png": (b"<script>alert(1)</script>", "application/octet-stream", "attachment"),
        "page.html": (b"<html></html>", "application/octet-stream", "attachment"),
        "draw.svg": (b"<svg onload='x()'/>", "application/octet-stream", "attachment"),
        "PNG.txt": (PNG, "image/png", "inline"),
    }
    for name, (data, media_type, disposition) in files.items():
        (house.folder / name).write_bytes(data)
        answer = house.client.get(house.place(rest=f"/files/{name}"))
        assert answer.content == data
        assert answer.headers["content-type"] == media_type, name
        assert answer.headers["content-disposition"].startswith(disposition), name
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_a_binary_or_a_folder_is_no_note(house: ServedHouse) -> None:
    (house.folder / "noise.md").write_bytes(b"\0\1\2" * 100)
    assert refused(house.client.get(house.place(rest="/notes/noise.md"))) == (400, "path_refused")
    (house.folder / "latin.md").write_bytes("# Größe".encode("latin-1"))
    assert "Gr" in house.get(rest="/notes/latin.md")["text"]


def test_an_at_sign_offers_files_folders_tags_and_guides(house: ServedHouse) -> None:
    write_agent(house.folder)
    (house.folder / "map of.md").write_text(MAP, "utf-8")
    job = house.post("", "/index")["job"]
    assert list(read_events(house.client, f"/api/jobs/{job}/events"))[-1].event == "end"

    def offers(q: str, **more: str) -> list[tuple[str, str]]:
        items = house.get(rest="/complete", q=q, **more)["items"]
        return [(item["kind"], item["insert"]) for item in items]

    assert ("file", "@plan.md") in offers("")
    assert offers("tid")[0] == ("file", "@sea/tides.md")
    assert ("folder", "@sea/") in offers("se")
    assert ("file", '@"map of.md"') in offers("map")
    assert offers("#") == [("tag", "@#sea/chart")]
    assert ("rule", "@rule:tides") in offers("tid", agent="master")
    assert offers("rule:", agent="master")[0][0] == "rule"
    assert offers("ref:wo", agent="master") == [("reference", "@ref:words")]
    assert offers("zzzz") == []


def test_completions_come_at_once_in_a_large_folder(house: ServedHouse) -> None:
    for number in range(1_200):
        folder = house.folder / f"log/{number % 30}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"note {number}.md").write_text(f"# Note {number}\n\n#day{number % 9}\n", "utf-8")
    shelf = house.portal.call(house.desk.searches.shelf, house.folder)
    house.portal.call(shelf.complete, "", (), 30)
    times = []
    for text in ("n", "note 11", "#day", "log", "zz"):
        began = perf_counter()
        house.portal.call(shelf.complete, text, (), 30)
        times.append(perf_counter() - began)
    # What it takes is some milliseconds; machines that do much else take a little longer.
    assert sorted(times)[len(times) // 2] < 0.1


def test_notes_are_indexed_by_a_job_that_says_how_far_it_is(house: ServedHouse) -> None:
    job = house.post("", "/index")["job"]
    events = list(read_events(house.client, f"/api/jobs/{job}/events"))
    end = events[-1]
    assert (end.event, end.data["state"]) == ("end", "done")
    assert end.data["result"]["notes"] == 2
    assert "LAMINA_EMBED" in end.data["result"]["by_words"]
    found = told(house.client.get(house.place(rest="/notes"), params={"q": "pier", "words": 1}))
    assert [hit["path"] for hit in found["hits"]] == ["plan.md"]
