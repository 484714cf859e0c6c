"""Offers workspace search as a tool: `localSearch`, with words, folders, tags and times.

Laws: a model searches no further than the person allows. Its findings are one self-explanatory
block; an error in a call becomes its result.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from lamina.core.codec import digest_value
from lamina.core.notes.note_names import is_in_folder
from lamina.core.notes.time_ranges import name_times, read_time_range
from lamina.core.schemas import check_arguments
from lamina.core.values.item import tool_id
from lamina.core.values.message import ToolDefinition
from lamina.core.values.note import NoteSearchResult, Scope, TimeRange
from lamina.core.values.tool import OfferedTool, ToolOutput, Toolset
from lamina.engine.runners.citations import INSTRUCTION, LOCAL_SEARCH, SearchOutput, screen_hits
from lamina.engine.sources.note_search import EVERYWHERE, TOP, WorkspaceSearch
from lamina.engine.sources.secret_screen import Secrets, SecretScreen
from lamina.errors import UsageError

_DAY = "A day as 2026-01-31, or a moment as 2026-01-31T12:00:00; in UTC unless it says otherwise."
_END = {"anyOf": [{"type": "string"}, {"type": "number"}]}
SEARCH = ToolDefinition(
    name=LOCAL_SEARCH,
    description=(
        "Searches the person's own notes by meaning and by words, and gives the passages that fit "
        "best, with their sources. Ask in whole sentences, and for everything at once."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for."},
            "folders": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only in these folders and below.",
            },
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Only in notes with one of these tags, or with one nested in it.",
            },
            "since": {"type": "string", "description": f"Only what changed from then on. {_DAY}"},
            "until": {"type": "string", "description": f"Only what changed before then. {_DAY}"},
            "timeRange": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"startTime": _END, "endTime": _END},
                        "additionalProperties": False,
                    },
                ],
                "description": (
                    "Only notes of that time: changed then, or with a date of then in their name "
                    "or frontmatter. As the person said it (today, last week, last 30 days, "
                    "2026-01, 2026-01-05 to 2026-02-10), or with both its ends."
                ),
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    },
)
OFFERED = OfferedTool(
    id=tool_id("workspace", LOCAL_SEARCH),
    definition=SEARCH,
    digest=digest_value(SEARCH),
    permission="free",
    label=f"workspace · {LOCAL_SEARCH}",
)


class SearchTools:
    """A tool host with the one tool. `scope` limits where it may search, `secrets` determines how
    secrets in the results are treated, `now` is the reference for words such as "today".
    """

    def __init__(
        self,
        search: WorkspaceSearch,
        *,
        now: Callable[[], float],
        scope: Scope = EVERYWHERE,
        top: int = TOP,
        secrets: Secrets = "redact",
    ) -> None:
        self._search = search
        self.scope = scope
        self._top = top
        self._secrets = secrets
        self._now = now
        self._screen = SecretScreen()

    async def toolset(self) -> Toolset:
        return Toolset(tools=(OFFERED,))

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        if name != LOCAL_SEARCH:
            return ToolOutput(text=f"There is no tool {name!r}.", is_error=True)
        return await self.search(arguments, self._secrets)

    async def search(self, arguments: Mapping[str, Any], secrets: Secrets) -> ToolOutput:
        """Return the result of a call; a `SearchOutput` unless its arguments are wrong."""
        try:
            result = await self.find(arguments, secrets)
        except UsageError as error:
            return ToolOutput(text=str(error), is_error=True)
        output = SearchOutput(
            text="",
            name=LOCAL_SEARCH,
            instruction=INSTRUCTION,
            query=arguments["query"],
            result=result,
        )
        return replace(output, text=output.render())

    async def find(
        self, arguments: Mapping[str, Any], secrets: Secrets = "redact"
    ) -> NoteSearchResult:
        """Return the results of a call, without secrets.

        Raises:
            UsageError: the arguments are wrong.
        """
        scope = narrow_scope(self.scope, self.read_scope(arguments))
        result = await self._search.search(arguments["query"], scope=scope, top=self._top)
        hits, warnings = screen_hits(self._screen, result.hits, secrets)
        return replace(
            result,
            hits=hits,
            warnings=(*result.warnings, *warnings),
            time_range=name_time_range(scope),
        )

    def read_scope(self, arguments: Mapping[str, Any]) -> Scope:
        """Return the scope that a call requests.

        Raises:
            UsageError: the arguments are wrong.
        """
        if problem := check_arguments(SEARCH.parameters, dict(arguments)):
            raise UsageError(f"The arguments do not fit the tool: {problem}")
        return Scope(
            folders=tuple(arguments.get("folders", ())),
            tags=tuple(arguments.get("tags", ())),
            since=_moment(arguments, "since"),
            until=_moment(arguments, "until"),
            time=read_time_range(arguments.get("timeRange"), datetime.fromtimestamp(self._now())),
        )


def narrow_scope(scope: Scope, request: Scope) -> Scope:
    """Return the requested scope, limited to `scope`. Folders outside of it are ignored; its tags
    always apply, whatever other tags are requested.
    """
    folders = request.folders
    if scope.folders:
        inside = (
            f for f in folders if any(is_in_folder(f"{f.strip('/')}/", s) for s in scope.folders)
        )
        folders = tuple(inside) or scope.folders
    since = [time for time in (scope.since, request.since) if time is not None]
    until = [time for time in (scope.until, request.until) if time is not None]
    return Scope(
        folders=folders,
        tags=scope.tags or request.tags,
        since=max(since, default=None),
        until=min(until, default=None),
        time=_narrow_time(scope.time, request.time),
    )


def _narrow_time(allowed: TimeRange | None, wanted: TimeRange | None) -> TimeRange | None:
    if allowed is None or wanted is None:
        return allowed or wanted
    starts = [start for start in (allowed.start, wanted.start) if start is not None]
    ends = [end for end in (allowed.end, wanted.end) if end is not None]
    words = "; ".join(dict.fromkeys((allowed.words, wanted.words)))
    return TimeRange(start=max(starts, default=None), end=min(ends, default=None), words=words)


def name_time_range(scope: Scope) -> str:
    """Return the searched time range in the words of the request; empty if there is no range."""
    changed = name_times(scope.since, scope.until)
    wanted = scope.time
    words = (wanted.words or name_times(wanted.start, wanted.end)) if wanted else ""
    return "; ".join(filter(None, (words, f"changed {changed}" if words and changed else changed)))


def _moment(arguments: Mapping[str, Any], name: str) -> float | None:
    text = arguments.get(name, "")
    if not text.strip():
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise UsageError(f"`{name}`: {text!r} is no day; write it as 2026-01-31") from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
