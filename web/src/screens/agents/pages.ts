/** Which tab shows which file of an agent, and the problems of each file. */

import { filePath, ofWorkspace } from "../../lib/api";
import { href } from "../../lib/router.svelte";
import type { Shapes } from "../../lib/types";

export type AgentPage = Shapes["AgentPage"];
export type Guide = Shapes["GuideEntry"];
export type Problem = Shapes["Problem"];
export type Include = Guide["include"];
type FileRow = Shapes["AgentFileRow"];

export const TABS = ["persona", "rules", "references", "tools", "memory", "usage"] as const;
export type Tab = (typeof TABS)[number];

const TAB_OF: Record<FileRow["kind"], Tab> = {
  agent: "persona",
  persona: "persona",
  skill: "references",
  other: "persona",
  rule: "rules",
  reference: "references",
  servers: "tools",
  memory: "memory",
};

export const isTab = (name: string | undefined): name is Tab => TABS.includes(name as Tab);

/** A path relative to the agent's own folder; other paths stay as they are. */
export function inside(place: string, path: string): string {
  const folder = place.replace(/\/+$/, "");
  return path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

/** The tab on which a file is edited. */
export function tabOf(path: string, files: readonly FileRow[]): Tab {
  const kind = files.find((file) => file.path === path)?.kind;
  if (kind) return TAB_OF[kind];
  if (path.startsWith("rules/")) return "rules";
  if (path.startsWith("references/") || path.startsWith("skills/")) return "references";
  return "persona";
}

export const agentUrl = (workspace: string, agent: string, ...rest: string[]): string =>
  ofWorkspace(workspace, "agents", agent, ...rest);

export const fileUrl = (workspace: string, agent: string, file: string): string =>
  filePath(agentUrl(workspace, agent, "files"), file);

export const tabHref = (workspace: string, agent: string, tab: Tab, query: Record<string, string> = {}): string =>
  href("w", workspace, "agents", agent, tab, query);

export const draftKey = (workspace: string, agent: string, file: string): string =>
  `agent:${workspace}:${agent}:${file}`;

export interface FileProblems {
  file: string;
  problems: Problem[];
}

/** Problems by file, errors first; files keep their order. */
export function byFile(place: string, problems: readonly Problem[]): FileProblems[] {
  const groups = new Map<string, Problem[]>();
  for (const problem of problems) {
    const file = inside(place, problem.path);
    groups.set(file, [...(groups.get(file) ?? []), problem]);
  }
  const weight = (problem: Problem): number => (problem.level === "warning" ? 1 : 0);
  return [...groups].map(([file, found]) => ({
    file,
    problems: found.toSorted((a, b) => weight(a) - weight(b) || (a.line ?? 0) - (b.line ?? 0)),
  }));
}

/** The problems of one file by line; several on one line are joined, those without a line go to the first. */
export function marksOf(place: string, file: string, problems: readonly Problem[]): Record<number, string> {
  const marks: Record<number, string> = {};
  for (const problem of problems) {
    if (inside(place, problem.path) !== file) continue;
    const line = problem.line ?? 1;
    marks[line] = marks[line] ? `${marks[line]}; ${problem.problem}` : problem.problem;
  }
  return marks;
}

/** The level in three digits. */
export const level = (guide: Pick<Guide, "level">): string => String(guide.level).padStart(3, "0");

export const INCLUDE_WORDS: Record<Include, string> = {
  always: "Part of every request.",
  manual: "Only when added: with @, in the request context, or by a file that matches its globs.",
  agent: "When search finds it relevant to the question.",
};

export const INCLUDE_TONES = { always: "L1", manual: "plain", agent: "accent" } as const;
