"""The doctor over HTTP: own sessions, dropped files, the sample, this machine."""

import base64
import json
import os
import tempfile
from pathlib import Path

import pytest
from tests.apps.web.served_house import Json, ServedHouse, read_events, refused, told
from tests.apps.web.test_cache_timeline import seed_breaks

from lamina.doctor.sample import sample_files


def sample_uploads() -> list[Json]:
    with sample_files() as (folder,):
        return [
            {"name": path.name, "content": path.read_text("utf-8")}
            for path in sorted(Path(folder).iterdir())
        ]


def test_the_breaks_of_a_session_are_those_of_its_timeline(house: ServedHouse) -> None:
    seed_breaks(house)
    report = house.get("breaks", "/doctor")
    rows = house.get("breaks", "/timeline")["rows"]
    lost = {row["id"]: row["broke"] for row in rows if row["broke"] and row["broke"]["tokens"]}
    found = {finding["request_id"].rpartition("/")[2]: finding for finding in report["findings"]}
    assert lost.keys() == found.keys()
    for request, finding in found.items():
        assert finding["tokens"] == lost[request]["tokens"]
        assert finding["extra"] == pytest.approx(lost[request]["price"])
        assert finding["sentence"]
        assert finding["fix"]
    assert report["totals"]["requests"] == 7


def test_dropped_files_are_read_and_not_kept(house: ServedHouse) -> None:
    before = set(os.listdir(tempfile.gettempdir()))
    report = told(house.client.post("/api/doctor", json={"files": sample_uploads()}))
    sample = told(house.client.get("/api/doctor/sample"))
    assert report["totals"] == sample["totals"]
    assert report["programs"] == ["Claude Code", "request log"]
    assert [f["file"] for f in report["findings"]] == [f["file"] for f in sample["findings"]]
    left = set(os.listdir(tempfile.gettempdir())) - before
    assert not [name for name in left if name.startswith("lamina-doctor")]


def test_what_was_said_is_a_digest_unless_it_is_asked_for(house: ServedHouse) -> None:
    files = sample_uploads()
    hashed = told(house.client.post("/api/doctor", json={"files": files}))
    spoken = told(house.client.post("/api/doctor", json={"files": files, "text": True}))
    texts = [finding["before"] for finding in hashed["findings"] if finding["before"]]
    assert texts
    assert all(text.startswith("sha256:") for text in texts)
    assert any("10:00" in (finding["before"] or "") for finding in spoken["findings"])
    sample = told(house.client.get("/api/doctor/sample", params={"text": 1}))
    assert sample["with_text"]


def test_a_name_from_outside_never_becomes_a_path(house: ServedHouse, tmp_path: Path) -> None:
    target = tmp_path / "stolen.jsonl"
    content = sample_uploads()[0]["content"]
    names = [str(target), "../../../stolen.jsonl", "..\\..\\x", "a\u0000b", "", "." * 300, "con"]
    files = [{"name": name, "content": content} for name in names]
    report = told(house.client.post("/api/doctor", json={"files": files}))
    assert report["read"]["files"] == len(names)
    assert not target.exists()
    assert not [name for name in names if "/" in (report["findings"][0]["file"])]


def test_broken_files_are_named_and_cost_nothing_else(house: ServedHouse) -> None:
    broken = [
        {"name": "half.jsonl", "content": sample_uploads()[0]["content"][:5_000]},
        {"name": "noise.bin", "content": base64.b64encode(os.urandom(4_000)).decode(),
         "encoding": "base64"},
        {"name": "deep.json", "content": "[" * 100_000},
        {"name": "database", "content": base64.b64encode(b"SQLite format 3\0" * 9).decode(),
         "encoding": "base64"},
        {"name": "empty", "content": ""},
    ]  # fmt: skip
    report = told(house.client.post("/api/doctor", json={"files": broken}))
    assert report["read"]["files"] == len(broken)
    assert report["totals"]["requests"] > 0
    named = {problem["file"] for problem in report["read"]["problems"]}
    assert {"noise.bin", "deep.json", "database"} <= named


def test_an_upload_without_sense_is_refused(house: ServedHouse) -> None:
    post = house.client.post
    assert refused(post("/api/doctor", json={"files": []})) == (422, "invalid")
    wrong = {"files": [{"name": "a", "content": "*", "encoding": "base64"}]}
    assert refused(post("/api/doctor", json=wrong)) == (422, "invalid")
    assert refused(post("/api/doctor", json={"files": [{"path": "/etc/passwd"}]}))[0] == 422
    huge = json.dumps({"files": [{"name": "a", "content": "x" * 34_000_000}]})
    answer = post("/api/doctor", content=huge, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_this_machine_is_looked_at_only_when_that_is_asked_for(house: ServedHouse) -> None:
    seed_breaks(house)
    place = Path.home() / ".claude/projects/harbour"
    place.mkdir(parents=True)
    (place / "morning.jsonl").write_text(sample_uploads()[0]["content"], "utf-8")
    job = told(house.client.post("/api/doctor/machine", json={}))["job"]
    events = list(read_events(house.client, f"/api/jobs/{job}/events"))
    progress = [event.data for event in events if event.event == "progress"]
    assert progress[-1]["done"] == progress[-1]["total"] == 1
    end = events[-1].data
    assert end["state"] == "done"
    assert end["result"]["totals"]["sessions"] == 2
    assert refused(house.client.post("/api/doctor/machine", json={"since": "soon"})) == (
        400, "usage",
    )  # fmt: skip
