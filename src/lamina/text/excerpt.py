"""The beginning and the end of a text that is too long.

Law: a cut text says so, and how long it was."""


def cut_text(text: str, limit: int) -> str:
    """The text, or its beginning and end with a note between them; never longer than `limit`."""
    if len(text) <= limit:
        return text
    note = f"\n[… cut here: {len(text):,} characters in all, at most {limit:,} are shown …]\n"
    room = limit - len(note)
    if room < 2:
        return text[:limit]
    # The beginning says what a result is about, the end how it turned out.
    tail = room // 4
    return f"{text[: room - tail]}{note}{text[len(text) - tail :]}"


def brief(text: str, width: int = 0) -> str:
    """A text on one line; of at most `width` characters, if that is said."""
    line = " ".join(text.split())
    return line if not width or len(line) <= width else f"{line[: width - 1].rstrip()}…"
