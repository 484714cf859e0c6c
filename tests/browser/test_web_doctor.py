"""The doctor on files of other programs, dropped into the page."""

import json
from pathlib import Path

from playwright.sync_api import FilePayload, expect
from tests.adapters.formats.samples import CLAUDE, lines
from tests.browser.house import House
from tests.browser.pages import look
from tests.doctor.request_samples import CODEX


def request_log() -> bytes:
    """Requests of a program that writes the time in front of everything."""
    rules = "Keep to the rules of the harbour. " * 400
    lines = []
    for number in range(4):
        messages = [{"role": "system", "content": f"It is 12:0{number}. {rules}"}]
        for at in range(number + 1):
            messages.append({"role": "user", "content": f"Question {at}?"})
            if at < number:
                messages.append({"role": "assistant", "content": f"Answer {at}."})
        body = {"model": "gpt-4o", "messages": messages}
        usage = {
            "prompt_tokens": 3_000 + number * 20, "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 0},
        }  # fmt: skip
        answer = {
            "id": f"c{number}", "object": "chat.completion", "model": "gpt-4o", "usage": usage,
            "choices": [{"index": 0, "finish_reason": "stop",
                         "message": {"role": "assistant", "content": f"Answer {number}."}}],
        }  # fmt: skip
        lines.append(
            {
                "timestamp": f"2026-03-01T12:0{number}:00Z",
                "request": {"body": body},
                "response": answer,
            }
        )
    return "\n".join(json.dumps(line) for line in lines).encode()


def test_dropped_files_are_looked_at_down_to_the_byte(house: House) -> None:
    page = house.visit("doctor")
    log = FilePayload(name="log.jsonl", mimeType="application/json", buffer=request_log())
    page.get_by_label("Files for the doctor").set_input_files(log)
    main = page.get_by_role("main")
    expect(main).to_contain_text("clock, date or id in front")
    expect(main).to_contain_text("4 requests")
    look(page, "doctor-report")
    expect(main).to_contain_text("byte")
    # Words of a conversation are shown only if somebody wants to see them.
    expect(main).not_to_contain_text("is 12:01. Keep")
    page.get_by_role("checkbox", name="Show message text").or_(
        page.get_by_role("button", name="Show message text")
    ).click()
    expect(main).to_contain_text("is 12:01. Keep")
    look(page, "doctor-finding")


def test_a_session_of_claude_code_is_looked_at(house: House) -> None:
    page = house.visit("doctor")
    file = FilePayload(name="5e55.jsonl", mimeType="application/json", buffer=CLAUDE)
    page.get_by_label("Files for the doctor").set_input_files(file)
    expect(page.get_by_role("main")).to_contain_text("request")
    look(page, "doctor-claude")


def test_a_session_of_codex_is_looked_at_with_what_its_break_cost(house: House) -> None:
    page = house.visit("doctor")
    file = FilePayload(name="rollout.jsonl", mimeType="application/json", buffer=lines(*CODEX))
    page.get_by_label("Files for the doctor").set_input_files(file)
    main = page.get_by_role("main")
    expect(main).to_contain_text("Codex")
    expect(main).to_contain_text("2 requests")
    expect(main).to_contain_text("2,432 tokens were read")
    look(page, "doctor-codex")


def test_the_sample_shows_what_the_doctor_says(house: House) -> None:
    page = house.visit("doctor")
    page.get_by_role("button", name="sample").first.click()
    expect(page.get_by_role("main")).to_contain_text("Avoidable part")
    look(page, "doctor-sample")


def test_a_session_that_is_dropped_into_the_list_is_imported(house: House, tmp_path: Path) -> None:
    page = house.visit("w/{w}")
    file = tmp_path / "5e55.jsonl"
    file.write_bytes(CLAUDE)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import a session").click()
    chooser.value.set_files(file)
    expect(page.get_by_role("navigation", name="Sessions")).to_contain_text("Fix")
