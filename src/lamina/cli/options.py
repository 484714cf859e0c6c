"""What several commands take."""

from pathlib import Path

import typer


def text_or_file(value: str) -> str:
    """The value, or what is in the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error
