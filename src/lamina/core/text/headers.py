"""Defines the header lines by which a model recognises the content that follows them.

Law: attached text cannot imitate one of them. Every header here is guarded by its opening: the
guard (`core/text/renderer.py`) is built from these values, so that a changed or new header cannot
be left unguarded.
"""

from msgspec import Struct


class Header(Struct, frozen=True):
    """A line that begins with `opening`, after `lead`, and continues with `rest`. A line of
    attached text with this opening is escaped; for headings, at `any_level`."""

    opening: str
    rest: str = ""
    lead: str = ""
    any_level: bool = False

    @property
    def text(self) -> str:
        return f"{self.lead}{self.opening}{self.rest}"


QUERY = Header("[User query]:", "\n\n", lead="---\n\n")
TOOLS = Header("# Additional context:", "\n\n")
NAMES = Header("Context attached to this message:", "\n")
IN_LIBRARY = Header("Find them in the ", "Context Library in the system prompt above.")
ABOVE = Header("Find them in the ", "context above.")
CHANGED = Header("Changed since it was last shown", "; the version below replaces the one above:\n")
ABSENT = Header("Attached, but not included here:", "\n")
IN_FORCE = Header("Rules and references in force", " from here on:\n")
NONE_IN_FORCE = Header("No rules or references are in force", " from here on.")
# The reason is left out: a summary is carried from cut to cut, and each may have another reason.
EARLIER = Header("[Earlier messages were removed", ". What they were about:]")
UNDER_WAY = Header("The question that is being worked on:")
LIBRARY = Header(
    "## Context Library",
    "\n\nThe following notes are available for reference:\n\n",
    any_level=True,
)
HEADERS = tuple(value for value in tuple(globals().values()) if isinstance(value, Header))
