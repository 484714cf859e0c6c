"""What `chat`, `ask` and `rpc` are told alike: the options that say how a person wants to talk."""

from datetime import datetime
from typing import Annotated, Any, Literal

import typer

Mode = Annotated[
    Literal["agent", "qa", "plan"],
    typer.Option(
        help="agent: the model may call tools, as often as it needs. qa: questions are answered "
        "from the notes of the workspace, with citations. plan: one batch of tools, then the "
        "answer."
    ),
]
Files = Annotated[
    bool,
    typer.Option(
        "--files",
        help="Let the model look at the workspace's files (ls, read, grep), and change them if you "
        "allow it (write, edit, mv, rm, undo).",
    ),
]
Active = Annotated[
    str | None,
    typer.Option("--active", metavar="NOTE", help="The note you have open: its pictures go along."),
]
Web = Annotated[
    Literal["off", "listed", "public"] | None,
    typer.Option(
        help="Which pages may be fetched: none (by default), those of --allow-host, or any public "
        "ones. The session keeps to it."
    ),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="HOST[:PORT]",
        help="A host that may be fetched from; may be given often. *.example.org means all below "
        "it, private:NAME one with a private address.",
    ),
]
Within = Annotated[
    list[str] | None,
    typer.Option(
        "--in",
        metavar="FOLDER|#TAG",
        help="Search only there; may be given often: any of the folders, any of the tags.",
    ),
]
Since = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Only notes changed since."),
]
Until = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="Only notes changed before."),
]
NoMemory = Annotated[
    bool, typer.Option("--no-memory", help="Do not tell the model what `lamina memory` holds.")
]


def read_scope(within: list[str] | None, since: datetime | None, until: datetime | None) -> Any:
    """Where to search, from what was said."""
    from lamina.values.note import Scope

    places = within or ()
    for place in places:
        if not place.strip("# "):
            raise typer.BadParameter(f"--in {place!r} names no folder and no tag")
    return Scope(
        folders=tuple(place.rstrip("/") or "/" for place in places if not place.startswith("#")),
        tags=tuple(place[1:] for place in places if place.startswith("#")),
        since=since.timestamp() if since else None,
        until=until.timestamp() if until else None,
    )


def settings_changes(web: str | None, allow_host: list[str] | None) -> dict[str, Any]:
    """Settings that were said now; a host without a word on the web means those that are listed."""
    changes: dict[str, Any] = {}
    if web is not None:
        changes["web"] = web
    if allow_host:
        changes.setdefault("web", "listed")
        changes["allow_hosts"] = tuple(allow_host)
    return changes


def refuse_files_in_qa(mode: str, files: bool) -> None:
    """Refuses what does not go together."""
    if mode == "qa" and files:
        raise typer.BadParameter("--files goes with --mode agent or plan; qa calls no tools")
