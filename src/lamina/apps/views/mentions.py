"""`@path`, `@rule:name` and `@ref:name` in a message: what they mean, and how they are written.

Law: a mention stays in the text as it was typed; what it names is attached beside it, and a rule or
reference is added to the session.
"""

import re
from pathlib import Path, PurePath

from msgspec import Struct

from lamina.core.assembly.inclusion import find_mentions as find_guides
from lamina.core.ports import WorkspaceSource
from lamina.core.values.item import ItemId, key_of, kind_of
from lamina.core.values.request import LeftOut
from lamina.engine.runners.composer import wants_composer

# Behind a space or an opening bracket: an address like a@b.c mentions nothing.
_MENTION = re.compile(
    r'(?:^|(?<=[\s(\[{]))@(?:"([^"\n]+)"|(\[\[[^\n]+?\]\])|([^\s"]+))', re.MULTILINE
)
_UNFINISHED = re.compile(r'(?:^|(?<=[\s(\[{]))@(?:"([^"\n]*)|([^\s"]*))$')
# A rule or a reference, which is no path; and one that is being typed, also behind a quote.
_GUIDE = re.compile(r"(?:rule|ref|reference):")
_UNFINISHED_GUIDE = re.compile(r'(?:^|(?<=[\s(\[{]))@((?:rule|ref|reference):)"([^"\n]*)$')
# What may follow a path in a sentence.
_TRAILING = ".,;:!?)]}'…"


class Mentions(Struct, frozen=True, kw_only=True):
    """What a message attaches, the rules and references that it adds, and mentions that name
    nothing that could be attached."""

    paths: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    guides: tuple[ItemId, ...] = ()


async def find_mentions(text: str, workspace: WorkspaceSource, root: Path) -> Mentions:
    """What the mentions of a message name. What looks like a path and cannot be read is attached
    all the same: the request then says why it is left out."""
    paths: list[str] = []
    unknown: list[str] = []
    for match in _MENTION.finditer(text):
        quoted, link, bare = match.groups()
        quoted = quoted or link
        if bare and _GUIDE.match(bare):
            continue
        word = quoted or bare
        spellings = [word] if quoted else _spellings(word)
        for spelling in spellings:
            path = workspace_path(spelling, root)
            if not isinstance(await workspace.read(path, "attached"), LeftOut):
                break
        else:
            path = workspace_path(spellings[-1], root)
            if wants_composer(match[0]):
                continue
            if not (quoted or "/" in path or PurePath(path).suffix):
                unknown.append(spellings[-1])
                continue
        if path not in paths:
            paths.append(path)
    guides = find_guides(text)
    return Mentions(paths=tuple(paths), unknown=tuple(unknown), guides=guides)


def _spellings(word: str) -> list[str]:
    """A bare mention as it stands, and without what ends the sentence around it."""
    shorter = word.rstrip(_TRAILING)
    return [word, shorter] if shorter and shorter != word else [word]


def unfinished_mention(text: str) -> tuple[str, int] | None:
    """The mention that is being typed at the end of `text`: what it says so far, and how many
    characters it takes with its mark."""
    if match := _UNFINISHED_GUIDE.search(text):
        return f"{match[1]}{match[2]}", len(match[0])
    match = _UNFINISHED.search(text)
    if match is None:
        return None
    return match[1] or match[2] or "", len(match[0])


def mention(path: str) -> str:
    """A path as it is mentioned."""
    plain = not re.search(r'[\s"]', path) and path == path.rstrip(_TRAILING)
    return f"@{path}" if plain else f'@"{path}"'


def mention_guide(item: ItemId) -> str:
    """A rule or reference as it is mentioned."""
    kind, name = ("ref" if kind_of(item) == "reference" else kind_of(item)), key_of(item)
    plain = not re.search(r'[\s"]', name) and name == name.rstrip(_TRAILING + ">")
    return f"@{kind}:{name}" if plain else f'@{kind}:"{name}"'


def workspace_path(path: str, root: Path) -> str:
    """A path as the workspace names it, also if it was given from the root of the machine."""
    place = Path(path).expanduser() if path.startswith("~/") else Path(path)
    if place.is_absolute():
        for base in (root.absolute(), root.resolve()):
            if place.is_relative_to(base):
                return place.relative_to(base).as_posix()
    return path
