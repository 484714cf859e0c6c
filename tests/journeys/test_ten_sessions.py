"""Ten people talk to one embedded model at once: nobody gets another's answer, and every cache does
what the ledger predicted."""

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from msgspec import Struct

from lamina.adapters.providers.model_book import DEFAULT_TARGET
from lamina.adapters.stores.memory import MemoryStore
from lamina.apps.wiring.runners import Clients, open_chat
from lamina.core.values.envelope import Options
from lamina.core.values.item import Item, note_id
from lamina.core.values.request import CacheVerdict
from lamina.core.values.settings import Settings

WORDS = (
    "walnut", "copper", "meadow", "lantern", "falcon",
    "velvet", "pepper", "island", "marble", "thunder",
)  # fmt: skip
QUESTIONS = ("What is the code word?", "Which code word opens the gate?")
# Ten whole windows would be two gigabytes.
WINDOW = 2_048


class Told(Struct, frozen=True, kw_only=True):
    word: str
    turn: int
    answer: str
    verdict: CacheVerdict


async def talk(word: str, folder: Path, clients: Clients) -> list[Told]:
    note = Item(id=note_id(f"{word}.md"), content=f"# The gate\n\nThe code word is {word}.\n")
    told: list[Told] = []
    async with await open_chat(
        system="Answer from the attached note, in one short sentence.", target=DEFAULT_TARGET,
        workspace=folder, store=MemoryStore(), settings=Settings(window=WINDOW),
        options=Options(max_tokens=16), providers=clients,
    ) as chat:  # fmt: skip
        for turn, question in enumerate(QUESTIONS):
            answer = await chat.run(question, attach=[note])
            assert answer.turn is not None
            assert answer.turn.verdict is not None
            told.append(Told(word=word, turn=turn, answer=answer.text, verdict=answer.turn.verdict))
    return told


async def talk_all(folder: Path) -> list[Told]:
    clients = Clients(slots=len(WORDS), window=WINDOW)
    told: list[Told] = []

    async def one(word: str) -> None:
        told.extend(await talk(word, folder, clients))

    async with anyio.create_task_group() as group:
        for word in WORDS:
            group.start_soon(one, word)
    return told


@pytest.fixture(scope="module")
def told(embedded_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Sequence[Told]:
    # Every test here looks at the same talk: it is what takes the time.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAMINA_CACHE", str(embedded_model.parent.parent))
        return anyio.run(talk_all, tmp_path_factory.mktemp("gates"))


def test_every_answer_belongs_to_its_question(told: Sequence[Told]) -> None:
    assert len(told) == len(WORDS) * len(QUESTIONS)
    for each in told:
        # The note's name is said now and then, and is its word as well.
        assert [word for word in WORDS if word in each.answer.lower()] == [each.word]


def test_every_session_finds_in_its_cache_what_the_ledger_predicted(told: Sequence[Told]) -> None:
    assert {each.verdict.meaning for each in told if each.turn == 0} == {"nothing_sent_before"}
    assert {each.verdict.reported for each in told if each.turn == 0} == {0}
    assert {each.verdict.meaning for each in told if each.turn > 0} == {"as_expected"}


def test_the_prediction_is_right_to_the_token(told: Sequence[Told]) -> None:
    off = {
        each.word: each.verdict for each in told if each.verdict.reported != each.verdict.expected
    }
    assert off == {}
