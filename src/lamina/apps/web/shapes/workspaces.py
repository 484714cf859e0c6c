"""Workspaces, the folders they could be, and who asks."""

from msgspec import Struct

from lamina.apps.web.route import RequestBody, RequestQuery, Right


class Me(Struct, frozen=True, kw_only=True):
    """Who asks, and what this server is. `workspace` is the folder it was started in, if any."""

    version: str
    rights: tuple[Right, ...]
    workspace: str
    default_target: str
    home: str
    data_folder: str
    store: str


class WorkspaceRow(Struct, frozen=True, kw_only=True):
    """One folder that was chosen. One that is not there any more has no number of sessions."""

    id: str
    name: str
    path: str
    is_there: bool
    sessions: int | None


class WorkspaceRows(Struct, frozen=True, kw_only=True):
    """All folders that were chosen, the one opened last first."""

    workspaces: tuple[WorkspaceRow, ...]


class NewWorkspace(RequestBody, frozen=True, kw_only=True):
    """The folder to work in; with `create`, one that is made."""

    path: str
    create: bool = False


class FolderQuery(RequestQuery, frozen=True, kw_only=True):
    """The folder to look into; without one, the home folder."""

    path: str = ""


class FolderRow(Struct, frozen=True, kw_only=True):
    """A folder in a folder."""

    name: str
    path: str
    is_hidden: bool


class FolderListing(Struct, frozen=True, kw_only=True):
    """The folders in a folder, for a person to choose one. `notes` is how many Markdown files are
    directly in it, `problem` why it cannot be looked into."""

    path: str
    parent: str | None
    home: str
    folders: tuple[FolderRow, ...]
    notes: int
    problem: str


class Done(Struct, frozen=True, kw_only=True):
    """Whether anything changed."""

    changed: bool
