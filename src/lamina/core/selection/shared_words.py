"""Which words of a question a text has, for a person who wants to know why it was found.

Law: a word counts if search would count it: endings, case and accents make no difference, and words
that say nothing are left out.
"""

from lamina.core.selection.terms import find_runs, find_terms, is_paired


def find_shared_words(question: str, text: str) -> tuple[str, ...]:
    """The words of a question that a text shares, as the question spells them, each once."""
    terms = frozenset(find_terms(text))
    words: dict[str, str] = {}
    for run in find_runs(question):
        # Of a script without spaces every pair of characters may be a word.
        for word in find_terms(run) if is_paired(run) else (run,):
            if not terms.isdisjoint(find_terms(word)):
                words.setdefault(word.casefold(), word)
    return tuple(words.values())
