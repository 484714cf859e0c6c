"""Splits questions and items into chunks, the texts that are compared.

Laws: chunks add nothing to the text, and leave out only white space; a chunk of a question or of an
item's text has at most 500 characters. Time is proportional to the length of the text, whatever it
contains.
"""

import re
from collections.abc import Iterator, Sequence

LONGEST_CHUNK = 500
# A server's description is in the chunk of each of its tools; its beginning is enough.
SERVER_DESCRIPTION = 200

# Chinese and Japanese punctuation is not followed by a space.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_PARAGRAPH_END = re.compile(r"\n[^\S\n]*\n")
_IDENTIFIER_JOINT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]{2})|[_.\-/:]+")


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a question, long ones in pieces; none if it is blank."""
    return tuple(piece for sentence in _sentences(text) for piece in _pieces(sentence))


def chunk_item(name: str, description: str, text: str) -> tuple[str, ...]:
    """Return `name: description` (whichever exist), then the text by paragraphs, long ones by
    sentences. A heading goes with the text that follows it."""
    head = ": ".join(filter(None, (name.strip(), description.strip())))
    chunks = list(_pieces(head))
    heading = ""
    for paragraph in filter(None, map(str.strip, _PARAGRAPH_END.split(text))):
        block = f"{heading}\n\n{paragraph}" if heading else paragraph
        if _is_heading(paragraph) and len(block) <= LONGEST_CHUNK // 2:
            heading = block
            continue
        heading = ""
        chunks += _pack_sentences(block)
    chunks += [heading] if heading else []
    return tuple(dict.fromkeys(chunks))


def chunk_tool(
    name: str,
    description: str,
    *,
    server: str = "",
    server_description: str = "",
    parameters: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return a tool as one chunk: its name and description, its name in words, its server and the
    names of its arguments."""
    lines = [": ".join(filter(None, (name.strip(), description.strip())))]
    words = name_in_words(name)
    if words.casefold() != name.strip().casefold():
        lines.append(words)
    place = ": ".join(filter(None, (server.strip(), _beginning(server_description))))
    lines += [place, ", ".join(parameters)]
    chunk = "\n".join(filter(None, lines))
    return (chunk,) if chunk else ()


def name_in_words(name: str) -> str:
    """Return `getUser_byID` as `get User by ID`: embedders read words better than identifiers."""
    return " ".join(_IDENTIFIER_JOINT.sub(" ", name).split())


def _beginning(text: str) -> str:
    flat = " ".join(text[: 4 * SERVER_DESCRIPTION].split())
    return flat[:SERVER_DESCRIPTION].rstrip()


def _is_heading(paragraph: str) -> bool:
    return paragraph.startswith("#") and "\n" not in paragraph


def _sentences(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, _SENTENCE_END.split(text)))


def _pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces that are short enough, cut between words where possible."""
    begin = 0
    while len(text) - begin > LONGEST_CHUNK:
        space = text.rfind(" ", begin + LONGEST_CHUNK // 2, begin + LONGEST_CHUNK + 1)
        end = space if space > 0 else begin + LONGEST_CHUNK
        if piece := text[begin:end].strip():
            yield piece
        begin = end
    if piece := text[begin:].strip():
        yield piece


def _pack_sentences(paragraph: str) -> Iterator[str]:
    """Yield a paragraph whole if it is short enough, otherwise in groups of sentences that are."""
    if len(paragraph) <= LONGEST_CHUNK:
        yield paragraph
        return
    batch: list[str] = []
    size = 0
    for sentence in _sentences(paragraph):
        for piece in _pieces(sentence):
            if batch and size + 1 + len(piece) > LONGEST_CHUNK:
                yield " ".join(batch)
                batch, size = [], 0
            batch.append(piece)
            size += len(piece) + (1 if size else 0)
    if batch:
        yield " ".join(batch)
