"""The tags within a text."""

import re
from collections.abc import Iterator

# What ends a tag: white space, ASCII punctuation except `-`, `_` and `/`, and punctuation of other
# scripts. The joiner U+200D and the selectors stay: emoji need them.
_TAG = re.compile(
    "#([^\\s\\0#!\"$%&'()*+,.:;<=>?@^`{|}~\\[\\]\\\\"
    "\\u2000-\\u200c\\u200e-\\u206f\\u2e00-\\u2e7f\\u3000-\\u3020\\uff01-\\uff0f\\uff1a-\\uff20]+)"
)


def find_tags(plain_text: str) -> Iterator[str]:
    """Tags without `#`, in order; what stands in code must be blanked out before."""
    for match in _TAG.finditer(plain_text):
        start = match.start()
        if start and not plain_text[start - 1].isspace():
            continue
        tag = match[1].strip("/")
        if not tag.replace("/", "").isdigit() and any(map(_says_something, tag)):
            yield tag


def _says_something(character: str) -> bool:
    return character.isalnum() or not character.isascii()
