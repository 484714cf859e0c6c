"""Splits texts into comparable terms, and finds the words that a question and a text share.

Laws: the terms of a text depend on the text alone, and take time proportional to its length,
whatever it contains. Case, accents, endings and the spelling of identifiers make no difference:
`readFile`, `read_file`, `read-file` and "reading files" share terms. A word is shared if search
would count it; stop words are left out.
"""

import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from unicodedata import normalize

import Stemmer

# Nothing longer is a word; what is cut off is rarely missed.
LONGEST_WORD = 64

# Scripts without spaces between words, or whose vowel signs are not letters to `re`: split into
# pairs of characters. South and South-East Asian, kana, Han, Hangul.
_PAIRED = (
    "\u0900-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9d\U00020000-\U000323af"
)
_ACCENTS = "\u0300-\u036f"
_RUN = re.compile(rf"[{_PAIRED}]+|(?:(?![{_PAIRED}])[\w{_ACCENTS}])+")
# For texts without such scripts; far faster.
_WORD = re.compile(rf"[\w{_ACCENTS}]+")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)
_IS_PAIRED = re.compile(rf"[{_PAIRED}]")
_ACCENT = re.compile(rf"[{_ACCENTS}]+")
# `readFile`, `HTTPServer`, `sha256`; but `PDFs` is one word.
_JOINT = re.compile(
    r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])"
)
_ACRONYMS = re.compile(r"([A-Z]{2,})s")

# Stop words, including the remains of some of them after an apostrophe.
STOP_WORDS = frozenset(
    """
    a about above after again against all also am an and any are aren as at be because been
    before being below between both but by can cannot could couldn d did didn do does doesn
    doing don down during each few for from further had hadn has hasn have haven having he her
    here hers herself him himself his how i if in into is isn it its itself let ll m me more
    most mustn my myself no nor not of off on once only or other ought our ours ourselves out
    over own please re s same shan she should shouldn so some such t than that the their theirs
    them themselves then there these they this those through to too under until up us ve very
    was wasn we were weren what when where which while who whom why will with won would wouldn
    you your yours yourself yourselves
    """.split()  # noqa: SIM905 - words read better than a list of strings
)

# The stemmer for a word, by its first character; English for everything spelled in ASCII.
_STEMMERS = (
    ("\u0370", "\u03ff", "greek"),
    ("\u0400", "\u052f", "russian"),
    ("\u0600", "\u06ff", "arabic"),
)


class _Stemmers(threading.local):
    """A stemmer keeps state while it works, so each thread has its own."""

    def __init__(self) -> None:
        self.by_name: dict[str, Stemmer.Stemmer] = {}

    def named(self, name: str) -> Stemmer.Stemmer:
        if name not in self.by_name:
            # Its own cache is ten times slower than stemming; terms are remembered anyway.
            self.by_name[name] = Stemmer.Stemmer(name, 0)
        return self.by_name[name]


_stemmers = _Stemmers()


def find_terms(text: str) -> list[str]:
    """Return the terms of `text` in order, as often as they occur. An identifier of several words
    yields its words, then itself as one term."""
    terms: list[str] = []
    for run in find_runs(text):
        terms += pair_terms(run) if is_paired(run) else word_terms(run)
    return terms


def find_runs(text: str) -> list[str]:
    """Return the stretches of `text` that have terms, independent of their surroundings. Words are
    cut first: normalising accents takes quadratic time."""
    if text.isascii() or not _IS_PAIRED.search(text):
        words = _ASCII_WORD if text.isascii() else _WORD
        return [run[:LONGEST_WORD] for run in words.findall(text)]
    return [run if is_paired(run) else run[:LONGEST_WORD] for run in _RUN.findall(text)]


def is_paired(run: str) -> bool:
    """Return whether a run is split into pairs instead of words, so that it may have any length."""
    return not run.isascii() and _IS_PAIRED.match(run) is not None


def pair_terms(run: str) -> list[str]:
    if len(run) == 1:
        return [run]
    return [run[index : index + 2] for index in range(len(run) - 1)]


@lru_cache(maxsize=1 << 16)
def word_terms(run: str) -> tuple[str, ...]:
    return tuple(_stem(word) for word in _words(run))


def _words(run: str) -> Iterator[str]:
    if run.isascii() and run.isalpha() and run.islower():
        # Most are already in final form.
        yield from () if run in STOP_WORDS else (run,)
        return
    word = run if run.isascii() else _without_accents(run)
    if acronyms := _ACRONYMS.fullmatch(word):
        word = acronyms[1]
    parts = [part for part in _JOINT.sub("_", word).casefold().split("_") if part]
    yield from (part for part in parts if part not in STOP_WORDS)
    if len(parts) > 1:
        yield "".join(parts)


def _without_accents(word: str) -> str:
    return normalize("NFC", _ACCENT.sub("", normalize("NFKD", word)))


def _stem(word: str) -> str:
    language = "english" if word.isascii() else _language_of(word[0])
    return _stemmers.named(language).stemWord(word) if language else word


def _language_of(character: str) -> str:
    return next((name for first, last, name in _STEMMERS if first <= character <= last), "")


def find_shared_words(question: str, text: str) -> tuple[str, ...]:
    """Return the words of a question that a text shares, as the question spells them, each once."""
    terms = frozenset(find_terms(text))
    words: dict[str, str] = {}
    for run in find_runs(question):
        # In a script without spaces every pair of characters may be a word.
        for word in find_terms(run) if is_paired(run) else (run,):
            if not terms.isdisjoint(find_terms(word)):
                words.setdefault(word.casefold(), word)
    return tuple(words.values())
