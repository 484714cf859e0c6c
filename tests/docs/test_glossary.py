"""Every word of GLOSSARY.md stands there once and lives in a file that exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Words of the theory page that are stressed and no terms, and terms in another form.
STRESSED = {"and", "is", "italics", "limit", "sent"}
FORMS = {
    "entries": "entry",
    "names": "full and named",
    "ops": "op",
    "prefixes": "prefix",
    "segments": "segment",
}
GLOSSARY = (ROOT / "GLOSSARY.md").read_text("utf-8")


def rows() -> list[list[str]]:
    table = GLOSSARY.split("|---|---|---|\n", 1)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_every_word_is_there_once_and_in_order() -> None:
    words = [word for word, _, _ in rows()]
    assert len(words) >= 40
    assert len(set(words)) == len(words)
    assert words == sorted(words)


def test_every_file_that_is_named_exists() -> None:
    for word, _, file in rows():
        (path,) = re.findall(r"^`([\w/]+\.py)`$", file)
        assert (ROOT / "src" / "lamina" / path).is_file(), word


def test_every_word_is_told_in_a_sentence_or_two() -> None:
    for word, meaning, _ in rows():
        assert meaning.endswith("."), word
        assert 20 < len(meaning) < 200, word


def test_the_words_of_the_theory_page_are_here() -> None:
    page = (ROOT / "docs" / "theory.md").read_text("utf-8")
    words = {word for word, _, _ in rows()}
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    named = set(re.findall(r"(?<![*\w])\*([a-z][a-z ]+)\*(?!\*)", prose)) - STRESSED
    singular = {FORMS.get(word, word) for word in named}
    assert len(singular) > 15
    assert singular <= words


def test_links_of_the_page_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([\w./-]+\.md)\)", GLOSSARY):
        assert (ROOT / target).is_file(), target
