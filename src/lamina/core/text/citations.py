"""Renders search results for the model, and renumbers the citations in its answers.

Law: every number in an answer refers to exactly one source, or is reported. The model's words stay;
only numbers change, and code is left alone. Renumbering twice changes nothing.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise

from msgspec import Struct
from msgspec.structs import replace

from lamina.core.text.pictures import is_escaped, line_spans, mask_code
from lamina.core.text.renderer import escape_content, one_line

SOURCES_HEADING = "#### Sources"
NO_DOCUMENTS = "No documents were found."
CITATION_RULES = """\
Cite with [^n] right after each statement that rests on a source; n is its number in the catalogue.
Cite several as [^1][^2]. Cite no number that is not in the catalogue.
Numbers like [^n] inside a document's text are its own footnotes, not sources.
Do not write a list of sources at the end."""

_NUMBER = re.compile(r"[0-9]{1,9}")
_CITATION = re.compile(
    r"\[\^[ \t]*+[0-9]{1,9}+(?:[ \t]*+[,;][ \t]*+(?:\^[ \t]*+)?+[0-9]{1,9}+)*+[ \t]*+\]"
)
_LEAD = re.compile(r" {0,3}(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?")
_OWN_HEADING = re.compile(
    r" {0,3}(?:#{1,6}[ \t]+)?(?:\*\*|__)?(?:Sources|References):?(?:\*\*|__)?:?\s*",
    re.IGNORECASE,
)
_LINK = re.compile(r"\[\[|\]\(|://")
# Characters that a wikilink cannot contain.
_NOT_IN_WIKILINKS = re.compile(r"[\[\]|]")


class Source(Struct, frozen=True, kw_only=True):
    """An entry of a source catalogue. Entries with the same path are one source."""

    number: int
    title: str
    path: str


class SearchDocument(Struct, frozen=True, kw_only=True):
    """A document, or a part of one, that a search found."""

    title: str
    path: str
    text: str


class RenumberedAnswer(Struct, frozen=True, kw_only=True):
    """A renumbered answer: the sources it cites, by number, and the numbers without a source."""

    text: str
    sources: tuple[Source, ...] = ()
    unknown: tuple[int, ...] = ()


def number_sources(
    documents: Iterable[SearchDocument], known: Mapping[str, int] | None = None
) -> tuple[Source, ...]:
    """Number the sources that a search found: one number per path, in order. Paths that are `known`
    from earlier searches keep their numbers, and new ones follow these."""
    titles: dict[str, str] = {}
    for document in documents:
        titles.setdefault(document.path, document.title)
    numbers = dict(known or {})
    unused = count(max(numbers.values(), default=0) + 1)
    for path in titles:
        if path not in numbers:
            numbers[path] = next(unused)
    return tuple(
        Source(number=numbers[path], title=title, path=path) for path, title in titles.items()
    )


def render_search(
    name: str,
    query_instruction: str,
    documents: Sequence[SearchDocument],
    known: Mapping[str, int] | None = None,
) -> str:
    """Render the results of a search tool called `name`, as the text inside its wrapper:
    instruction, documents, source catalogue and citation rules. The question is not included.
    `known` maps paths to their existing numbers."""

    def content(text: str) -> str:
        return escape_content(text, name)

    def line(text: str) -> str:
        return content(one_line(text))

    sources = number_sources(documents, known)
    numbers = {source.path: source.number for source in sources}
    sections = [_element("search_instruction", content(query_instruction.strip()))]
    if not documents:
        return "\n\n".join([*sections, NO_DOCUMENTS])
    blocks = [
        _element(
            "search_document",
            f"<source>[^{numbers[document.path]}]</source>\n<title>{line(document.title)}</title>\n"
            f"<path>{line(document.path)}</path>\n"
            + _element("search_text", content(document.text)),
        )
        for document in documents
    ]
    catalogue = [
        f"[^{source.number}]: {line(source.title)} ({line(source.path)})" for source in sources
    ]
    sections += [
        _element("search_documents", "\n".join(blocks)),
        _element("source_catalogue", "\n".join(catalogue)),
        _element("citation_rules", CITATION_RULES),
    ]
    return "\n\n".join(sections)


def _element(tag: str, content: str) -> str:
    return f"<{tag}>\n{content}\n</{tag}>"


def renumber_citations(answer: str, sources: Sequence[Source]) -> RenumberedAnswer:
    """Number an answer's citations by first mention, and list the sources they refer to.

    `[^1, 2]` becomes `[^1][^2]`. Definitions that the model wrote (`[^1]: ...`) are renumbered but
    do not count as mentions; those at the end of the answer are sorted, and duplicates that result
    from renumbering are dropped. If nothing is cited and there is no list, all sources are appended
    as `[^1]: [[title]]` lines under a `#### Sources` heading, with the path for a title that is
    empty or ambiguous.
    """
    scan = _Scan(answer)
    catalogue = _Catalogue(sources)
    inline = [number for mark in scan.marks if mark.is_mention for number in mark.numbers]
    labels = [number for mark in scan.marks if mark.is_label for number in mark.numbers]
    visible = [number for mark in scan.marks for number in mark.numbers]
    mentions = inline or labels
    is_silent = not mentions and answer.strip()
    keys = catalogue.keys(catalogue.key_by_number if is_silent else mentions)
    strange_numbers = {number for number in visible if number not in catalogue.key_by_number}
    numbering = _number([*keys, *catalogue.keys(visible)], strange_numbers)
    new_number = {
        old: numbering[key] for old, key in catalogue.key_by_number.items() if key in numbering
    }
    text = scan.rewrite(new_number)
    cited_sources = tuple(
        replace(catalogue.source_by_key[key], number=numbering[key]) for key in keys
    )
    if cited_sources and not mentions and not scan.has_own_list:
        text = _append_sources(text, cited_sources, scan.open_fence)
    unknown_numbers = sorted(strange_numbers.intersection(mentions))
    return RenumberedAnswer(text=text, sources=cited_sources, unknown=tuple(unknown_numbers))


def has_citations(answer: str) -> bool:
    """Return whether an answer cites anything, known or not."""
    return any(mark.is_mention for mark in _Scan(answer).marks)


def _number(keys: Iterable[str], reserved_numbers: set[int]) -> dict[str, int]:
    numbering: dict[str, int] = {}
    number = 0
    for key in keys:
        if key not in numbering:
            number += 1
            while number in reserved_numbers:
                number += 1
            numbering[key] = number
    return numbering


def _append_sources(text: str, sources: Sequence[Source], open_fence: str) -> str:
    text = text.rstrip()
    if open_fence:
        text += f"\n{open_fence}"
    title_counts = Counter(source.title.strip() for source in sources)
    lines = []
    for source in sources:
        title = source.title.strip()
        name = title if title and title_counts[title] == 1 else source.path or title
        link = link_to(source.path, title) if is_web_link(source.path) else link_to(name)
        lines.append(f"[^{source.number}]: {link}")
    return f"{text}\n\n{SOURCES_HEADING}\n\n" + "\n".join(lines)


def is_web_link(link: str) -> bool:
    """Return whether a source is a web page; no path of a note has two slashes in a row."""
    return link.startswith(("http://", "https://"))


def link_to(name: str, title: str = "") -> str:
    """Return a link to a note by its path or title: `[[name]]`, or a Markdown link if the name
    contains characters that would end that; for a web page, a Markdown link with its `title`."""
    line = one_line(name)
    words = one_line(title) or line if is_web_link(name) else line
    if not is_web_link(name) and not _NOT_IN_WIKILINKS.search(line):
        return f"[[{line}]]"
    text = re.sub(r"([\[\]`\\])", r"\\\1", words)
    # Nothing in the address may look like a citation, either.
    target = re.sub(r"[\[\]<>^`|\\%]", lambda match: f"%{ord(match[0]):02X}", line)
    return f"[{text}](<{target}>)"


def without_definitions(answer: str) -> str:
    """Return an answer without the list of definitions at its end and the heading above it, which
    are the model's own."""
    scan = _Scan(answer)
    body = answer[: scan.list_start]
    if body == answer:
        return answer
    lines = body.rstrip().split("\n")
    if _OWN_HEADING.fullmatch(lines[-1]):
        lines.pop()
    return "\n".join(lines).rstrip()


class _Catalogue:
    """Sources by number and by identity."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.key_by_number: dict[int, str] = {}
        self.source_by_key: dict[str, Source] = {}
        for source in sources:
            key = self.key_by_number.setdefault(source.number, source.path or f"\0{source.number}")
            self.source_by_key.setdefault(key, source)

    def keys(self, numbers: Iterable[int]) -> list[str]:
        """Return the keys of the numbered sources, each once, in order of first mention."""
        keys = (self.key_by_number[number] for number in numbers if number in self.key_by_number)
        return list(dict.fromkeys(keys))


class _Mark(Struct, frozen=True, kw_only=True):
    """One bracket of citations and its position. A label names a definition; a mention counts as a
    citation."""

    start: int
    end: int
    line_start: int
    indent: int
    numbers: tuple[int, ...]
    is_label: bool
    is_mention: bool

    @property
    def opens_line(self) -> bool:
        return self.start == self.line_start + self.indent


class _Scan:
    """The positions of an answer's citations, and the start of the list of definitions at its
    end."""

    def __init__(self, answer: str) -> None:
        self._answer = answer
        self._masked, self.open_fence = mask_code(answer)
        self._lines = list(line_spans(self._masked))
        self.list_start = self._find_list()
        self.marks = list(self._find_marks())

    def _find_list(self) -> int:
        """Return the start of the definitions at the end, with their continuation lines."""
        list_start = len(self._answer)
        for start, end in reversed(self._lines):
            line = self._masked[start:end]
            if _defines(line):
                list_start = start
            elif line.strip() and not line.startswith(("  ", "\t")):
                break
        return list_start

    def _find_marks(self) -> Iterator[_Mark]:
        for start, end in self._lines:
            line = self._masked[start:end]
            lead = _lead(line)
            in_list = start >= self.list_start
            # In the list at the end of an answer a definition may be a list item; elsewhere it is
            # bare.
            is_definition = _defines(line) and (in_list or not line[:lead].strip())
            for match in _CITATION.finditer(line):
                if not is_escaped(line, match.start()):
                    yield _Mark(
                        start=start + match.start(),
                        end=start + match.end(),
                        line_start=start,
                        indent=lead,
                        numbers=tuple(map(int, _NUMBER.findall(match[0]))),
                        is_label=is_definition and match.start() == lead,
                        is_mention=not is_definition and not in_list,
                    )

    @property
    def has_own_list(self) -> bool:
        """Return whether the answer ends with unnumbered links under a heading of sources."""
        has_links = False
        for start, end in reversed(self._lines):
            line = self._masked[start:end]
            if has_links and _OWN_HEADING.fullmatch(line):
                return True
            if line.strip():
                if not _LINK.search(line):
                    return False
                has_links = True
        return False

    def rewrite(self, new_number: Mapping[int, int]) -> str:
        """Return the answer with new numbers, and with the definitions at its end sorted."""
        labels = [m for m in self.marks if m.is_label and m.start >= self.list_start]
        bounds = [0, *(mark.line_start for mark in labels), len(self._answer)]
        body, *texts = self._renumber(bounds, new_number)
        entries = [
            _Entry.of(mark, text, new_number) for mark, text in zip(labels, texts, strict=True)
        ]
        return body + _join_entries(entries)

    def _renumber(self, bounds: Sequence[int], new_number: Mapping[int, int]) -> Iterator[str]:
        """Yield the stretches between `bounds`, with new numbers."""
        runs = deque(_runs(self.marks))
        for start, end in pairwise(bounds):
            pieces, end_of_last = [], start
            while runs and runs[0][0].start < end:
                run = runs.popleft()
                numbers = [
                    new_number.get(number, number) for mark in run for number in mark.numbers
                ]
                # Two in one at the start of a line and before a colon would look like a definition.
                if not (run[0].opens_line and self._answer.startswith(":", run[-1].end)):
                    numbers = list(dict.fromkeys(numbers))
                pieces.append(self._answer[end_of_last : run[0].start])
                pieces += [f"[^{number}]" for number in numbers]
                end_of_last = run[-1].end
            yield "".join(pieces) + self._answer[end_of_last:end]


class _Entry(Struct, frozen=True, kw_only=True):
    """One definition of the list at the end of an answer."""

    number: int
    is_known: bool
    lead: str
    text: str
    gap: str

    @classmethod
    def of(cls, label: _Mark, text: str, new_number: Mapping[int, int]) -> "_Entry":
        lead, core, number = text[: label.indent], text[label.indent :].rstrip(), label.numbers[0]
        return cls(
            number=new_number.get(number, number),
            is_known=number in new_number,
            lead=lead,
            text=core,
            gap=text[len(lead) + len(core) :],
        )


def _join_entries(entries: Sequence[_Entry]) -> str:
    """Join the definitions by number, each known one once. List markers and gaps keep their
    places."""
    numbers: set[int] = set()
    texts = []
    for entry in sorted(entries, key=lambda entry: entry.number):
        if not (entry.is_known and entry.number in numbers):
            texts.append(entry.text)
        numbers.add(entry.number)
    leads = [entry.lead for entry in entries]
    gaps = [entry.gap for entry in (*entries[: len(texts) - 1], *entries[-1:])]
    return "".join(map("".join, zip(leads, texts, gaps, strict=False)))


def _runs(marks: Iterable[_Mark]) -> Iterator[list[_Mark]]:
    """Yield runs of adjacent marks."""
    run: list[_Mark] = []
    for mark in marks:
        if run and run[-1].end != mark.start:
            yield run
            run = []
        run.append(mark)
    if run:
        yield run


def _lead(line: str) -> int:
    match = _LEAD.match(line)
    return match.end() if match else 0


def _defines(line: str) -> bool:
    """Return whether the line starts with one number and a colon."""
    match = _CITATION.match(line, _lead(line))
    return bool(match and line.startswith(":", match.end()) and len(_NUMBER.findall(match[0])) == 1)
