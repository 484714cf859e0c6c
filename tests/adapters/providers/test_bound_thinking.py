"""Thinking that a model binds to what stood before it: what it is asked, and what it reports."""

import logging
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.adapters.providers.vendors import anthropic as vendor

import lamina
from lamina.adapters.providers.model_book import load_book
from lamina.adapters.providers.wires import anthropic
from lamina.apps.views.why import explain_question
from lamina.core.audit.requests import describe_transformations, list_requests
from lamina.core.values.envelope import Options
from lamina.core.values.prompt import Prompt
from lamina.core.values.usage import InputTransformation
from lamina.core.values.wire import WireRequest

BETA = "thinking-binding-controls-2026-08-01"
BOUND = ("fable-5-1", "mythos-5-2", "opus-5-5", "sonnet-5-5", "haiku-5-5")
FREE = ("fable-5", "opus-5", "sonnet-5", "opus-4-8", "haiku-4-5")


def encode(model: str, **options: Any) -> dict[str, Any]:
    target = load_book().find(f"anthropic:claude-{model}")
    return anthropic.encode(WireRequest(prompt=Prompt(), target=target, options=Options(**options)))


@pytest.mark.parametrize("model", BOUND)
def test_a_model_that_binds_its_thinking_is_asked_to_drop_what_no_longer_fits(model: str) -> None:
    body = encode(model, reasoning="low", temperature=0.5, schema={"type": "object"})
    assert body["thinking"] == {
        "type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"},
    }  # fmt: skip
    assert body["extra_headers"] == {"anthropic-beta": BETA}
    assert body["output_config"]["effort"] == "low"
    # It takes neither of these.
    assert not {"extra_body", "tool_choice"} & body.keys()


@pytest.mark.parametrize("model", FREE)
def test_other_models_are_told_nothing_of_it(model: str) -> None:
    assert not {"thinking", "extra_headers"} & encode(model).keys()


@pytest.mark.parametrize("model", [*BOUND, *FREE])
def test_a_claude_that_takes_no_temperature_gets_none(model: str) -> None:
    taken = model == "haiku-4-5"
    assert ("extra_body" in encode(model, temperature=0.5)) == taken
    assert ("extra_body" in encode(model, top_p=0.5)) == taken


# -- what is reported of it ----------------------------------------------------------------------

DROPPED = {
    "type": "thinking_dropped", "path": "messages.1.content.0",
    "reason": "prefix_binding_mismatch",
}  # fmt: skip
OTHER_MODEL = DROPPED | {"path": "messages.3.content.0", "reason": "model_binding_mismatch"}
ALLOWED = DROPPED | {"type": "thinking_mismatch_allowed"}
NEW = {"type": "image_shrunk", "path": "messages.0.content.1", "detail": 7}


def answer(*changes: dict[str, Any]) -> dict[str, Any]:
    return vendor.answer("Nine.") | {"input_transformations": list(changes)}


def test_what_the_provider_did_with_blocks_comes_with_the_reply() -> None:
    reply = anthropic.decode(answer(DROPPED, OTHER_MODEL, NEW))
    assert reply.transformations == (
        InputTransformation(
            kind="thinking_dropped", path="messages.1.content.0", reason="prefix_binding_mismatch"
        ),
        InputTransformation(
            kind="thinking_dropped", path="messages.3.content.0", reason="model_binding_mismatch"
        ),
        InputTransformation(kind="image_shrunk", path="messages.0.content.1"),
    )
    assert [change.is_surprise for change in reply.transformations] == [True, False, False]
    for nothing in (vendor.answer("Nine."), answer(), vendor.answer("Nine.") | {
        "input_transformations": None
    }):  # fmt: skip
        assert anthropic.decode(nothing).transformations == ()


def test_people_are_told_in_words() -> None:
    changes = anthropic.decode(answer(DROPPED, ALLOWED, OTHER_MODEL, DROPPED, NEW)).transformations
    assert describe_transformations(changes) == (
        "the provider dropped 2 thinking blocks: what stood before them changed",
        "the provider kept 1 thinking block that fails its check: what stood before it changed",
        "the provider dropped 1 thinking block: this model does not read the thinking of the one "
        "before",
        "the provider reports image_shrunk for 1 thinking block: no reason is given",
    )


def test_what_was_dropped_is_recorded_with_the_answer_and_shown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        store = lamina.JsonlStore(tmp_path)
        target = "anthropic:claude-opus-5-5"
        async with await lamina.open_session("talk", store=store, target=target) as session:
            await (await session.prepare("One?")).commit(answer())
            await (await session.prepare("Two?")).commit(answer(DROPPED, OTHER_MODEL))
        journal = await store.read("talk")
        first, second = (listed.reply for listed in list_requests(journal).listed)
        assert first is not None
        assert second is not None
        assert first.transformations == ()
        assert [change.reason for change in second.transformations] == [
            "prefix_binding_mismatch", "model_binding_mismatch",
        ]  # fmt: skip
        # An answer of which nothing was dropped is recorded as it always was.
        lines = store.path_of("talk").read_text("utf-8").splitlines()
        assert sum("transformations" in line for line in lines) == 1
        assert explain_question(journal, 1, load_book()).warnings == ()
        assert explain_question(journal, 2, load_book()).warnings == describe_transformations(
            second.transformations
        )

    caplog.set_level(logging.WARNING, logger="lamina")
    anyio.run(main)
    told = [record.getMessage() for record in caplog.records if "thinking" in record.getMessage()]
    assert len(told) == 1
    assert told[0].endswith("what stands before them 1, thinking_dropped")
