"""Reads one PDF in a separate process. Run by its path, never imported: see `pdf`.

Law: the process sees only its input bytes, cannot open files for writing, and ends when it reaches
its limits. Each page is written at once as a line of JSON, so a crash loses only the current page.
"""

import json
import sys
from typing import Any


def main(place: str, max_pages: int, max_characters: int, megabytes: int, seconds: int) -> None:
    # The library's folder; nothing else in the caller's path is available here.
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
    """Set system limits, where available."""
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
                continue  # the system has the name but does not support the limit


def _say(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
