"""Search results as the model reads them, and the citations of its answer.

Law: every number an answer shows means one source, or is reported. The model's words stay; only
numbers change, and what stands in code does not. Renumbering what was renumbered changes nothing.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from lamina.text.pictures import is_escaped, mask_code
from lamina.text.rendering import escape_content, one_line

SOURCES_HEADING = "#### Sources"
NO_DOCUMENTS = "No documents were found."
CITATION_RULES = """\
Cite with [^n] right after each statement that rests on a source; n is its number in the catalogue.
Cite several as [^1][^2]. Cite no number that is not in the catalogue.
Numbers like [^n] inside a document's text are its own footnotes, not sources.
Do not write a list of sources at the end."""

_OWN_TAGS = (
    "search_instruction", "search_documents", "search_document", "search_text",
    "source_catalogue", "citation_rules",
)  # fmt: skip

_NUMBER = re.compile(r"[0-9]{1,9}")
_CITATION = re.compile(
    r"\[\^[ \t]*+[0-9]{1,9}+(?:[ \t]*+[,;][ \t]*+(?:\^[ \t]*+)?+[0-9]{1,9}+)*+[ \t]*+\]"
)
# In the list that ends an answer a definition may be a list item; elsewhere it stands bare.
_LABEL = re.compile(r"(?P<lead> {0,3}(?:[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)?)\[\^[0-9]{1,9}\]:")
_OWN_HEADING = re.compile(
    r"[ ]{0,3}(?:#{1,6}[ \t]+)?(?:\*\*|__)?(?:Sources|References):?(?:\*\*|__)?:?\s*",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[\[|\]\(|://")
_NOT_IN_LINKS = str.maketrans({"[": "(", "]": ")", "|": "/"})


class Source(Struct, frozen=True, kw_only=True):
    """One entry of a source catalogue. Entries with the same path are one source."""

    number: int
    title: str
    path: str


class Document(Struct, frozen=True, kw_only=True):
    """A document, or a part of one, that a search found."""

    title: str
    path: str
    text: str


class Cited(Struct, frozen=True, kw_only=True):
    """An answer in its new numbering: the sources it cites, and the numbers that have none."""

    text: str
    sources: tuple[Source, ...] = ()
    unknown: tuple[int, ...] = ()


def number_sources(documents: Iterable[Document]) -> tuple[Source, ...]:
    """The catalogue of what a search found: one number per path, in order."""
    titles: dict[str, str] = {}
    for document in documents:
        titles.setdefault(document.path, document.title)
    return tuple(
        Source(number=number, title=title, path=path)
        for number, (path, title) in enumerate(titles.items(), start=1)
    )


def render_search(name: str, query_instruction: str, documents: Sequence[Document]) -> str:
    """What a search tool called `name` found, as the text inside its wrapper: instruction,
    documents, source catalogue and citation rules. The question is not part of it."""

    def content(text: str) -> str:
        return escape_content(text, name, *_OWN_TAGS)

    def line(text: str) -> str:
        return content(one_line(text))

    sources = number_sources(documents)
    numbers = {source.path: source.number for source in sources}
    sections = [_element("search_instruction", content(query_instruction.strip()))]
    if not documents:
        return "\n\n".join([*sections, NO_DOCUMENTS])
    blocks = [
        _element(
            "search_document",
            f"<source>[^{numbers[each.path]}]</source>\n<title>{line(each.title)}</title>\n"
            f"<path>{line(each.path)}</path>\n" + _element("search_text", content(each.text)),
        )
        for each in documents
    ]
    catalogue = [f"[^{each.number}]: {line(each.title)} ({line(each.path)})" for each in sources]
    sections += [
        _element("search_documents", "\n".join(blocks)),
        _element("source_catalogue", "\n".join(catalogue)),
        _element("citation_rules", CITATION_RULES),
    ]
    return "\n\n".join(sections)


def _element(tag: str, content: str) -> str:
    return f"<{tag}>\n{content}\n</{tag}>"


def renumber_citations(answer: str, sources: Sequence[Source]) -> Cited:
    """`answer` with its citations numbered by first mention, and the sources they mean.

    `[^1, 2]` becomes `[^1][^2]`. Definitions that the model wrote (`[^1]: ...`) take part but
    do not count as mentions; those that end the answer are put in order, and one that now
    repeats another is dropped. Where nothing is cited and no list stands, all sources are
    appended as `[^1]: [[title]]` lines under a `#### Sources` heading, with the path for a
    title that is empty or not the only one.
    """
    scan = _Scan(answer)
    catalogue = _Catalogue(sources)
    inline = [number for mark in scan.marks if mark.is_mention for number in mark.numbers]
    labels = [number for mark in scan.marks if mark.is_label for number in mark.numbers]
    visible = [number for mark in scan.marks for number in mark.numbers]
    mentions = inline or labels
    cited = catalogue.keys(mentions)
    is_listed = bool(inline or cited or scan.has_own_list)
    if not cited and not inline and answer.strip():
        cited = catalogue.keys(catalogue.key_by_number)
    numbering = _number(
        [*cited, *catalogue.keys(visible)],
        taken={number for number in visible if number not in catalogue.key_by_number},
    )
    text = scan.rewrite(catalogue.key_by_number, numbering)
    listed = tuple(replace(catalogue.source_by_key[key], number=numbering[key]) for key in cited)
    if listed and not is_listed:
        text = _append_sources(text, listed, scan.open_fence)
    unknown = dict.fromkeys(each for each in mentions if each not in catalogue.key_by_number)
    return Cited(text=text, sources=listed, unknown=tuple(unknown))


def _number(keys: Iterable[str], taken: set[int]) -> dict[str, int]:
    numbering: dict[str, int] = {}
    number = 0
    for key in keys:
        if key not in numbering:
            number += 1
            while number in taken:
                number += 1
            numbering[key] = number
    return numbering


def _append_sources(text: str, sources: Sequence[Source], open_fence: str) -> str:
    text = text.rstrip()
    if open_fence:
        text += f"\n{open_fence}"
    titles = [source.title.strip() for source in sources]
    lines = [
        f"[^{source.number}]: [[{_link_name(title if titles.count(title) == 1 else '', source)}]]"
        for title, source in zip(titles, sources, strict=True)
    ]
    return f"{text}\n\n{SOURCES_HEADING}\n\n" + "\n".join(lines)


def _link_name(title: str, source: Source) -> str:
    return one_line(title or source.path).translate(_NOT_IN_LINKS)


class _Catalogue:
    """Sources by number and by what makes them one."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.key_by_number: dict[int, str] = {}
        self.source_by_key: dict[str, Source] = {}
        for source in sources:
            key = self.key_by_number.setdefault(source.number, source.path or f"\0{source.number}")
            self.source_by_key.setdefault(key, source)

    def keys(self, numbers: Iterable[int]) -> list[str]:
        """What the numbers mean, each once, in order of first mention."""
        known = (self.key_by_number[each] for each in numbers if each in self.key_by_number)
        return list(dict.fromkeys(known))


class _Mark(Struct, frozen=True, kw_only=True):
    """One bracket of citations and where it stands."""

    start: int
    end: int
    numbers: tuple[int, ...]
    is_label: bool
    is_mention: bool


class _Scan:
    """Where an answer cites, and where the list of definitions begins that ends it."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.masked, self.open_fence = mask_code(answer)
        self.lines = list(_line_spans(self.masked))
        self.list_start = self._find_list()
        self.marks = list(self._find_marks())

    def _find_list(self) -> int:
        """The start of the definitions at the end, with their continuations."""
        found = len(self.answer)
        for start, end in reversed(self.lines):
            line = self.masked[start:end]
            if _LABEL.match(line):
                found = start
            elif line.strip() and not line.startswith(("  ", "\t")):
                break
        return found

    def _find_marks(self) -> Iterator[_Mark]:
        for start, end in self.lines:
            line = self.masked[start:end]
            label = _LABEL.match(line)
            if label and start < self.list_start and label["lead"].strip():
                label = None
            for found in _CITATION.finditer(line):
                if not is_escaped(line, found.start()):
                    is_label = label is not None and found.end() + 1 == label.end()
                    yield _Mark(
                        start=start + found.start(),
                        end=start + found.end(),
                        numbers=tuple(map(int, _NUMBER.findall(found[0]))),
                        is_label=is_label,
                        is_mention=label is None and start < self.list_start,
                    )

    @property
    def has_own_list(self) -> bool:
        """Whether the answer ends with links under a heading of sources, without numbers."""
        has_links = False
        for start, end in reversed(self.lines):
            line = self.masked[start:end]
            if has_links and _OWN_HEADING.fullmatch(line):
                return True
            if line.strip():
                if not _LINK.search(line):
                    return False
                has_links = True
        return False

    def rewrite(self, key_by_number: dict[int, str], numbering: dict[str, int]) -> str:
        """The answer with new numbers, and with the definitions at its end in order."""

        def renumber(number: int) -> int:
            return numbering[key_by_number[number]] if number in key_by_number else number

        pieces: list[str] = []
        entries: list[_Entry] = []
        done, run_end, run = 0, -1, set[int]()
        for index, mark in enumerate(self.marks):
            numbers = [renumber(number) for number in mark.numbers]
            if mark.is_label and mark.start >= self.list_start:
                ...
        return ""
