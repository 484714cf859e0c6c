"""Agents: read, edited, checked, and tried with questions."""

from pathlib import Path
from typing import Literal

from anyio.to_thread import run_sync

from lamina.apps.views import folder_trust
from lamina.apps.views.agent_overview import UsageReport, collect_usage
from lamina.apps.views.folder_trust import look_at_folder, trust_folder
from lamina.apps.web import agent_page
from lamina.apps.web.agent_files import AgentFile, AgentFiles
from lamina.apps.web.agent_page import (
    AgentCheck,
    AgentList,
    AgentPage,
    ListedAgent,
    TrustPage,
    choose_for,
    list_cards,
)
from lamina.apps.web.http_answers import Refusal, not_found, refuse_paths
from lamina.apps.web.http_bodies import RequestBody, RequestQuery
from lamina.apps.web.routes import Call, Route
from lamina.apps.wiring.stores import default_store
from lamina.apps.wiring.trust_lookup import FolderTrust
from lamina.core.values.item import Include
from lamina.core.values.selection import AgentChoice, Preset

AGENTS = "/api/workspaces/{workspace}/agents"
AGENT = f"{AGENTS}/{{agent}}"


class NewAgent(RequestBody, frozen=True, kw_only=True):
    """A new agent's name; it is created among the user's own or in the workspace."""

    name: str
    where: Literal["user", "workspace"] = "workspace"


class NewFileText(RequestBody, frozen=True, kw_only=True):
    """The whole text of a file. `etag` is that of the version read; empty for a new file."""

    text: str
    etag: str = ""


class DeletedFile(RequestQuery, frozen=True, kw_only=True):
    etag: str


class IncludeChange(RequestBody, frozen=True, kw_only=True):
    """When a rule or a reference, by its item id, is part of requests from now on."""

    item: str
    include: Include
    etag: str = ""


class TriedQuestion(RequestBody, frozen=True, kw_only=True):
    """A question; without a preset the agent's own settings apply."""

    question: str
    preset: Preset | None = None


class GivenTrust(RequestBody, frozen=True, kw_only=True):
    """The digest of what the person was shown."""

    digest: str


async def list_agents(call: Call) -> AgentList:
    return await run_sync(list_cards, call.desk.workspace(call.workspace))


async def make_agent(call: Call) -> AgentPage:
    asked: NewAgent = call.body
    workspace = call.desk.workspace(call.workspace)
    return await run_sync(agent_page.make_agent, asked.name, asked.where, workspace)


async def show_agent(call: Call) -> AgentPage:
    listed = await _find(call)
    return await run_sync(agent_page.read_page, listed, call.desk.workspace(call.workspace))


async def read_agent_file(call: Call) -> AgentFile:
    files = await _files(call)
    with refuse_paths("file"):
        return await run_sync(files.read, call.path["path"])


async def write_agent_file(call: Call) -> AgentFile:
    asked: NewFileText = call.body
    files = await _files(call)
    with refuse_paths("file"):
        return await run_sync(files.write, call.path["path"], asked.text, asked.etag)


async def delete_agent_file(call: Call) -> None:
    files = await _files(call)
    with refuse_paths("file"):
        await run_sync(files.delete, call.path["path"], call.query.etag)


async def change_include(call: Call) -> AgentPage:
    asked: IncludeChange = call.body
    files = await _files(call)
    with refuse_paths("file"):
        await run_sync(files.change_include, asked.item, asked.include, asked.etag)
    return await show_agent(call)


async def check_agent(call: Call) -> AgentCheck:
    return await run_sync(agent_page.check_listed, await _find(call))


async def try_question(call: Call) -> AgentChoice:
    asked: TriedQuestion = call.body
    if not asked.question.strip():
        raise Refusal(422, "invalid", "the question is blank", ("question",))
    listed = await _find(call)
    index = await run_sync(call.desk.searches.index)
    return await choose_for(
        asked.question,
        Path(listed.found.path),
        call.desk.workspace(call.workspace),
        asked.preset,
        index,
    )


async def show_usage(call: Call) -> UsageReport:
    listed = await _find(call)
    store = default_store(call.desk.workspace(call.workspace))
    # A session records the name it was opened with: the folder's, the agent's own, or a path.
    agent = listed.found.agent
    names = dict.fromkeys(filter(None, (listed.card.name, agent.name if agent else "")))
    everything = await collect_usage(store, None)
    own = tuple(use for use in everything.agents if use.agent in names)
    return UsageReport(agents=own, unread=everything.unread)


async def show_trust(call: Call) -> TrustPage:
    return agent_page.show_trust(await _trust(call))


async def give_trust(call: Call) -> TrustPage:
    folder = await _trust(call)
    if folder.claims.digest != call.body.digest:
        raise Refusal(
            409, "trust_changed", "the folder has changed since it was shown; review it again"
        )
    await trust_folder(folder)
    return await show_trust(call)


async def revoke_trust(call: Call) -> TrustPage:
    folder = await _trust(call)
    workspace = call.desk.workspace(call.workspace)
    await run_sync(folder_trust.revoke_trust, folder.claims.place, workspace)
    return await show_trust(call)


async def _find(call: Call) -> ListedAgent:
    """Return the agent that an address names; a path is not a name."""
    workspace = call.desk.workspace(call.workspace)
    listed = await run_sync(agent_page.find_listed, call.path["agent"], workspace)
    if listed is None:
        raise not_found("agent", call.path["agent"], "see the list of agents")
    return listed


async def _files(call: Call) -> AgentFiles:
    listed = await _find(call)
    with refuse_paths("agent"):
        place, workspace = Path(listed.found.path), call.desk.workspace(call.workspace)
        return await run_sync(AgentFiles, place, workspace)


async def _trust(call: Call) -> FolderTrust:
    listed = await _find(call)
    return await look_at_folder(listed.found.path, call.desk.workspace(call.workspace))


ROUTES = (
    Route(
        method="GET", path=AGENTS, handler=list_agents, result=AgentList,
        summary="Lists the agents of the user and of the workspace.",
    ),
    Route(
        method="POST", path=AGENTS, handler=make_agent, result=AgentPage, body=NewAgent,
        status=201, right="admin", summary="Creates a new agent as a starting point.",
    ),
    Route(
        method="GET", path=AGENT, handler=show_agent, result=AgentPage,
        summary="Shows an agent: persona, rules, references, tools, memory, files and problems.",
    ),
    Route(
        method="GET", path=f"{AGENT}/files/{{path:path}}", handler=read_agent_file,
        result=AgentFile, summary="Reads a file of the agent, with its etag.",
    ),
    Route(
        method="PUT", path=f"{AGENT}/files/{{path:path}}", handler=write_agent_file,
        result=AgentFile, body=NewFileText, right="admin",
        summary="Writes a file of the agent, if it has not changed since.",
    ),
    Route(
        method="DELETE", path=f"{AGENT}/files/{{path:path}}", handler=delete_agent_file,
        result=None, query=DeletedFile, status=204, right="admin",
        summary="Deletes a rule or a reference, if it has not changed since.",
    ),
    Route(
        method="POST", path=f"{AGENT}/include", handler=change_include, result=AgentPage,
        body=IncludeChange, right="admin",
        summary="Changes when a rule or a reference is part of requests.",
    ),
    Route(
        method="POST", path=f"{AGENT}/check", handler=check_agent, result=AgentCheck,
        summary="Checks the agent's files for problems.",
    ),
    Route(
        method="POST", path=f"{AGENT}/select", handler=try_question, result=AgentChoice,
        body=TriedQuestion, summary="Shows what a question would select, and near misses.",
    ),
    Route(
        method="GET", path=f"{AGENT}/usage", handler=show_usage, result=UsageReport,
        summary="Shows how the agent's items were used across its sessions.",
    ),
    Route(
        method="GET", path=f"{AGENT}/trust", handler=show_trust, result=TrustPage,
        summary="Shows what the agent's folder brings, and whether it is trusted.",
    ),
    Route(
        method="POST", path=f"{AGENT}/trust", handler=give_trust, result=TrustPage,
        body=GivenTrust, right="admin", summary="Trusts the folder as it was shown.",
    ),
    Route(
        method="DELETE", path=f"{AGENT}/trust", handler=revoke_trust, result=TrustPage,
        right="admin", summary="Stops trusting the folder.",
    ),
)  # fmt: skip
