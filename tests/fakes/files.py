"""Where sessions are on disk, for tests that look at the files of a workspace's default store."""

from pathlib import Path

from lamina.adapters.stores.jsonl import JsonlStore
from lamina.apps.wiring.folders import workspace_folder


def session_file(workspace: Path, session: str) -> Path:
    return JsonlStore(workspace_folder(workspace)).path_of(session)
