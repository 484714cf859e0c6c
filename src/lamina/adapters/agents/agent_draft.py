"""Collects the parts of an agent while its files are read."""

from pathlib import Path
from typing import Any

from lamina.adapters.agents.disk import Disk
from lamina.adapters.agents.fields import ProblemList
from lamina.adapters.agents.guides import GuideSet
from lamina.core.values.agent import Agent, Project, Skill


class AgentDraft:
    """The parts read so far. `disk` reads the files; `place` is the given path."""

    def __init__(self, disk: Disk, place: Path, name: str) -> None:
        self.disk = disk
        self.place = place
        self.problems: ProblemList = disk.problems
        self.guides = GuideSet(self.problems)
        self.name = name
        self.description = ""
        self.version = ""
        self.model = ""
        self.persona = ""
        self.memory = ""
        self.settings: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.servers: dict[str, Any] = {}
        self.projects: list[Project] = []
        self.skills: list[Skill] = []
        self.notes: list[str] = []
        self.autonomous = False
        # Skills by their source file, with links resolved.
        self.skill_files: dict[tuple[int, int], int] = {}
        self.relations: dict[str, tuple[str, ...]] = {}
        # Every item named in a relation, with its file and line.
        self.mentions: list[tuple[str, str, int]] = []

    def agent(self) -> Agent:
        return Agent(
            name=self.name,
            description=self.description,
            version=self.version,
            model=self.model,
            persona=self.persona,
            memory=self.memory,
            settings=self.settings,
            options=self.options,
            guides=self.guides.all,
            servers=self.servers,
            projects=tuple(self.projects),
            skills=tuple(self.skills),
            relations=self.relations,
            problems=self.problems.all,
            notes=tuple(dict.fromkeys(self.notes)),
            autonomous=self.autonomous,
            place=self.disk.label(self.place),
            root=str(self.disk.door.spelling),
        )
