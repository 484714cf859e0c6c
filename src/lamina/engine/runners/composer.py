"""Handles `@composer` in a message: the person wants changes to notes, and the model is instructed
how to make them.

Law: the typed text stays as it is. The instructions are a rule: it is laid down once, named while
it applies, and ends with the first message that does not ask for it.
"""

import re
from collections.abc import Iterable

from lamina.core.text.pictures import mask_code
from lamina.core.values.item import HIGH, Attachment, Item, item_id
from lamina.engine.sources.attachments import Attachable

# At the start of a word, and a separate word: not `me@composer.org`, not `@composers`.
_MENTION = re.compile(r"(?<![\w@./-])@composer(?![\w/-]|\.\w)", re.IGNORECASE)

COMPOSER = Item(
    id=item_id("rule", "composer"),
    content="""\
The person wants notes to be changed or written.
- Where tools that change files are offered (`edit`, `write`), use them: read a note before you
  change it, and change no more than was asked for.
- Otherwise propose each change as the whole new content of the note, in one fenced code block
  whose first line is the path of the note and nothing else.
- Never invent a path: take one that you were shown, or for a new note the one that the person
  names; if there is none, ask.
- Keep the frontmatter of a note as it is, unless that is what was to be changed.
- Say in a sentence what you changed and why, and do not repeat the note outside of its block.""",
)


def wants_composer(text: str) -> bool:
    """Return whether a message asks for changes; a mention inside code does not count."""
    return "@composer" in text.lower() and bool(_MENTION.search(mask_code(text)[0]))


def without_composer(attach: Iterable[Attachable]) -> list[Attachable]:
    """Return the attachments of a message, without the instructions that its text requested."""
    return [a for a in attach if not (isinstance(a, Attachment) and a.item.id == COMPOSER.id)]


def with_composer(text: str, attach: Iterable[Attachable]) -> Iterable[Attachable]:
    """Return the attachments of a message, with the instructions for changes if its text requests
    them.
    """
    # A bare path is not a list; that error is reported where the list is read.
    if isinstance(attach, str) or not wants_composer(text):
        return attach
    return (*attach, Attachment(item=COMPOSER, priority=HIGH))
