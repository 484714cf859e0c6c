"""What the encoder can read, and what a search makes of it."""

from pathlib import Path

import pytest

from lamina.adapters.embed.index.sqlite_index import SqliteIndex
from lamina.adapters.embed.minilm import MiniLM
from lamina.core.selection.chosen_items import choose_items
from lamina.core.selection.question import split_question
from lamina.core.selection.scores import FLUENT, HALTING, UNREAD, rank_documents
from lamina.core.values.item import item_id
from lamina.core.values.note import SearchTier
from lamina.core.values.selection import Document, SearchSettings

pytestmark = pytest.mark.anyio
RUSSIAN = {
    "ключи": "Ключи меняют каждый месяц, старые удаляют.",
    "лодки": "Лодки стоят у северного причала.",
    "обед": "Обед подают в полдень, кроме воскресенья.",
}

ENGLISH = {
    "keys": "Keys are rotated every month, old ones are deleted.",
    "boats": "Boats lie at the north quay.",
    "disks": "Disks are formatted with btrfs.",
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
    assert corpus.tier.by == "words"


@pytest.mark.usefixtures("embedding_cache")
@pytest.mark.parametrize(
    "question", ["как настроить резервное копирование", "パスワードの管理", "كيف أحفظ كلمات المرور"]
)
async def test_a_question_in_another_script_that_shares_no_word_finds_nothing(
    tmp_path: Path, question: str
) -> None:
    documents = [Document(item_id("rule", name), (text,)) for name, text in ENGLISH.items()]
    corpus = await SqliteIndex(tmp_path / "index.sqlite", MiniLM()).load(documents)
    query = split_question(question)
    scores = await corpus.score([part.text for part in query.parts])
    assert scores.cosine is None
    assert rank_documents(documents, scores, query) == ()
    assert corpus.tier.by == "words"


@pytest.mark.usefixtures("embedding_cache")
async def test_latin_letters_that_it_hardly_knows_still_have_a_meaning(tmp_path: Path) -> None:
    documents = [Document(item_id("rule", name), (text,)) for name, text in ENGLISH.items()]
    corpus = await SqliteIndex(tmp_path / "index.sqlite", MiniLM()).load(documents)
    (fluency,) = await MiniLM().fluency(["zfs"])
    scores = await corpus.score(["zfs"])
    assert fluency < UNREAD
    assert scores.cosine is not None
    assert corpus.tier.words == "by meaning and words"
    # Where the word is found, it says more than its vector, and how it was found is said.
    assert (await corpus.score(["btrfs"])).cosine is None
    assert corpus.tier.words == "by words"


@pytest.mark.usefixtures("embedding_cache")
async def test_for_a_script_it_cannot_read_nothing_is_embedded_and_all_words_count(
    tmp_path: Path,
) -> None:
    texts = {f"{number}": f"Note {number} about boats." for number in range(200)} | RUSSIAN
    documents = [Document(item_id("rule", name), (text,)) for name, text in texts.items()]
    index = SqliteIndex(tmp_path / "index.sqlite", MiniLM())
    parts = ["Как часто меняют ключи?"]
    corpus = await index.load_for(parts, documents, patience=60.0)
    scores = await corpus.score(parts)
    found = rank_documents(documents, scores, split_question(parts[0]))
    assert [item.item for item in found] == [item_id("rule", "ключи")]
    assert corpus.tier == SearchTier(by="words", passages=203, indexed=0)
    assert corpus.tier.words == "by words"
