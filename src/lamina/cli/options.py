"""Flags that several commands take, each written once, in groups that become the records of
`lamina.faces.options`."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from lamina.faces.options import Mode, PromptOptions, SessionOptions, SettingChanges
from lamina.values.note import Scope
from lamina.values.web import WebAccess

# Panels of `--help`.
_session = partial(typer.Option, rich_help_panel="Session")
_attachments = partial(typer.Option, rich_help_panel="Attachments")
_tools = partial(typer.Option, rich_help_panel="Mode and tools")
_notes = partial(typer.Option, rich_help_panel="Notes to search")
_web = partial(typer.Option, rich_help_panel="Web pages")
_date = partial(_notes, formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], metavar="DATE")

AllowTools = Annotated[
    bool,
    _tools(
        "--allow-tools",
        help="Run every tool call without asking; the session's settings stay as they are.",
    ),
]
Within = Annotated[
    list[str] | None,
    _notes(
        "--in",
        metavar="FOLDER|#TAG",
        help="Only in any of these folders, with any of these tags. Repeatable.",
    ),
]
Since = Annotated[datetime | None, _date(help="Only notes changed since then.")]
Until = Annotated[datetime | None, _date(help="Only notes changed before then.")]


@dataclass(frozen=True, kw_only=True)
class PreviewFlags:
    """Whom a question would be put to, and how: for a session that is not kept."""

    workspace: Annotated[
        Path, _session("--workspace", "-w", help="The folder that attached paths are read from.")
    ] = Path()
    model: Annotated[
        str | None,
        _session(
            "--model", "--target", "-m", "-t", metavar="NAME",
            help="provider:model, such as local:smollm2-135m.",
        ),
    ] = None  # fmt: skip
    system: Annotated[
        str, _session(metavar="TEXT", help="The system prompt, or @FILE to read it from a file.")
    ] = ""
    agent: Annotated[
        str | None,
        _session(
            "--agent", "-A", metavar="NAME|PATH",
            help="An agent: persona, rules, references, tools. See `lamina agent`.",
        ),
    ] = None  # fmt: skip
    project: Annotated[str | None, _session(metavar="NAME", help="A project of the agent.")] = None
    mode: Annotated[
        Mode,
        _tools(
            help="agent: the model may call tools as often as it needs. qa: questions are answered "
            "from the notes of the workspace, with citations. plan: one batch of tool calls, then "
            "the answer."
        ),
    ] = "agent"
    files: Annotated[
        bool,
        _tools(
            "--files",
            help="Let the model look at the workspace's files (ls, read, grep), and change them "
            "if you allow it (write, edit, mv, rm, undo).",
        ),
    ] = False
    within: Within = None
    since: Since = None
    until: Until = None
    web: Annotated[
        WebAccess | None,
        _web(
            help="Which pages may be fetched: none (the default), those of --allow-host, or any "
            "public page. The session remembers it."
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        _web(
            "--allow-host",
            metavar="HOST[:PORT]",
            help="A host to fetch pages from; *.example.org means every host below it, "
            "private:NAME one with a private address. Repeatable.",
        ),
    ] = None

    def options(self, changes: SettingChanges | None = None) -> SessionOptions:
        """The record; `changes` are settings with flags of their own."""
        if self.mode == "qa" and self.files:
            raise typer.BadParameter("--files goes with --mode agent or plan; qa calls no tools")
        return SessionOptions(
            workspace=self.workspace,
            target=self.model,
            system=text_or_file(self.system),
            agent=self.agent,
            project=self.project,
            mode=self.mode,
            files=self.files,
            scope=read_scope(self.within, self.since, self.until),
            changes=replace(
                changes or SettingChanges(),
                # A host alone means that listed ones may be fetched from.
                web=self.web or ("listed" if self.allow_host else None),
                allow_hosts=tuple(self.allow_host or ()),
            ),
        )


@dataclass(frozen=True, kw_only=True)
class SessionFlags(PreviewFlags):
    """Which session is opened or continued, with whom and how."""

    workspace: Annotated[
        Path,
        _session(
            "--workspace", "-w", exists=True, file_okay=False,
            help="The folder that attached paths are read from.",
        ),
    ] = Path()  # fmt: skip
    session: Annotated[
        str | None,
        _session(
            "--session", "-s", metavar="ID",
            help="Continue this session: its id, or the start of it.",
        ),
    ] = None  # fmt: skip
    max_tokens: Annotated[
        int | None,
        _session(
            min=1,
            metavar="TOKENS",
            help="Limit answers to this many tokens. The session remembers it.",
        ),
    ] = None
    no_memory: Annotated[
        bool, _session("--no-memory", help="Do not tell the model what `lamina memory` holds.")
    ] = False
    mcp: Annotated[
        Path | None,
        _tools(help="A JSON file with mcpServers: tools to use.", exists=True, dir_okay=False),
    ] = None

    def options(self, changes: SettingChanges | None = None) -> SessionOptions:
        return replace(
            super().options(changes),
            session=self.session,
            max_tokens=self.max_tokens,
            memory=not self.no_memory,
            mcp=self.mcp,
        )


@dataclass(frozen=True, kw_only=True)
class PromptFlags:
    """What goes along with every question."""

    attach: Annotated[
        list[str] | None,
        _attachments(
            "--attach", "-a", metavar="REFERENCE",
            help="A path, the name of a note, a folder/, a #tag, lines (note.md#L3-L9), a section "
            "(note#Heading) or a URL. Repeatable.",
        ),
    ] = None  # fmt: skip
    essential: Annotated[
        list[str] | None,
        _attachments(
            metavar="REFERENCE",
            help="Like --attach, but never left out for lack of room. Repeatable.",
        ),
    ] = None

    def options(self) -> PromptOptions:
        return PromptOptions(attach=tuple(self.attach or ()), essential=tuple(self.essential or ()))


@dataclass(frozen=True, kw_only=True)
class PersonFlags(PromptFlags):
    """What goes along with the questions of a person, who may have a note open."""

    active: Annotated[
        str | None,
        _attachments(metavar="NOTE", help="The note you have open: its pictures go along."),
    ] = None

    def options(self) -> PromptOptions:
        return replace(super().options(), active=self.active)


def text_or_file(value: str) -> str:
    """The value, or what is in the file that `@FILE` names."""
    if not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"cannot read {value[1:]!r}: {error}") from error


def read_scope(within: list[str] | None, since: datetime | None, until: datetime | None) -> Scope:
    """Where to search, as the flags have it."""
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
