"""What the encoder can read, and what a search makes of it."""

from pathlib import Path

import pytest

from lamina.embed.index.sqlite_index import SqliteIndex
from lamina.embed.minilm import MiniLM
from lamina.selection.items import choose_items
from lamina.selection.question import split_question
from lamina.selection.scores import FLUENT, HALTING, UNREAD
from lamina.values.item import item_id
from lamina.values.selection import Document, SearchSettings

pytestmark = pytest.mark.anyio
RUSSIAN = {
    "ключи": "Ключи меняют каждый месяц, старые удаляют.",
    "лодки": "Лодки стоят у северного причала.",
    "обед": "Обед подают в полдень, кроме воскресенья.",
}


@pytest.mark.usefixtures("embedding_cache")
async def test_an_encoder_tells_its_own_language_from_others() -> None:
    english, german, russian, japanese, number = await MiniLM().fluency(
        [
            "How do I upgrade the packages of my system?",
            "Wie aktualisiere ich die Pakete meines Rechners?",
            "Как обновить пакеты моей системы?",
            "システムのパッケージを更新するには",
            "2026-11-17",
        ]
    )
    assert english > FLUENT > german > HALTING
    assert max(russian, japanese) < UNREAD
    assert number > FLUENT


@pytest.mark.usefixtures("embedding_cache")
async def test_a_question_in_another_script_is_answered_by_its_words(tmp_path: Path) -> None:
    documents = [Document(item_id("rule", name), (text,)) for name, text in RUSSIAN.items()]
    corpus = await SqliteIndex(tmp_path / "index.sqlite", MiniLM()).load(documents)
    query = split_question("Как часто меняют ключи?")
    scores = await corpus.score([part.text for part in query.parts])
    items = choose_items(documents, scores, query, SearchSettings())
    # Vectors of a script that it cannot read are all alike: they would bring everything.
    assert [(item.item, item.score, item.origin) for item in items] == [
        (item_id("rule", "ключи"), None, "lexical")
    ]
    assert corpus.lexical == ""
