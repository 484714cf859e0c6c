"""Reads one PDF in a process of its own. Run by its path, never imported: see `pdf`.

Law: it sees only the bytes of its input; it cannot open a file for writing, and it ends at its
limits. It writes each page at once, as a line of JSON, so a crash costs only the page it happens
on.
"""

import json
import sys
from typing import Any


def main(place: str, max_pages: int, max_characters: int, megabytes: int, seconds: int) -> None:
    # The folder of the library; nothing else of the caller's path is available here.
    sys.path.append(place)
    import pypdfium2
    from pypdfium2 import raw

    _limit(megabytes, seconds)
    data = sys.stdin.buffer.read()
    try:
        document = pypdfium2.PdfDocument(data)
        count = len(document)
    except pypdfium2.PdfiumError as error:
        is_locked = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD
        _say({"failed": "locked" if is_locked else "damaged"})
        return
    _say({"pages": count, "title": document.get_metadata_value("Title")})
    room = max_characters
    for index in range(min(count, max_pages)):
        try:
            page = document[index]
            text = page.get_textpage().get_text_range()
        except pypdfium2.PdfiumError:
            _say({"damaged": index + 1})
            continue
        _say({"page": index + 1, "text": text[:room], "cut": len(text) > room})
        room -= len(text)
        page.close()
        if room <= 0:
            break


def _limit(megabytes: int, seconds: int) -> None:
    """Set the system's limits, where it has them."""
    try:
        import resource
    except ImportError:
        return
    size = megabytes * 1024 * 1024
    limits = {"RLIMIT_AS": size, "RLIMIT_CPU": seconds, "RLIMIT_CORE": 0, "RLIMIT_FSIZE": 0}
    for name, limit in limits.items():
        number = getattr(resource, name, None)
        if number is not None:
            try:
                resource.setrlimit(number, (limit, limit))
            except (OSError, ValueError):
                continue  # a system that knows the name but not the limit


def _say(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
