/** The branches of a session as rows with rails, like the graph of a version history.
 *
  * Laws: every node is in one row, or in one fold. A node stands below its parent. At a fork the other branches come
  * first, each on a rail further right, and the continued one goes straight down: the active path is always the
  * leftmost rail. */

import type { BranchNode } from "./types";

export interface Branches {
  nodes: ReadonlyMap<string, BranchNode>;
  children: ReadonlyMap<string, readonly string[]>;
  roots: readonly string[];
  /** The number of nodes below each, on all branches. */
  behind: ReadonlyMap<string, number>;
}

export function branchesOf(nodes: readonly BranchNode[]): Branches {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<string, string[]>();
  const roots: string[] = [];
  for (const node of nodes) {
    if (!known.has(node.parent) || node.parent === node.id) roots.push(node.id);
    else if (children.has(node.parent)) children.get(node.parent)!.push(node.id);
    else children.set(node.parent, [node.id]);
  }
  // Parents come before their children, so one pass from the end is enough.
  const behind = new Map<string, number>();
  for (const node of nodes.toReversed()) {
    const own = behind.get(node.id) ?? 0;
    if (known.has(node.parent)) behind.set(node.parent, (behind.get(node.parent) ?? 0) + own + 1);
  }
  return { nodes: known, children, roots, behind };
}

export function childrenOf(branches: Branches, id: string): readonly string[] {
  return branches.children.get(id) ?? [];
}

/** All siblings of a node, including itself, in the order written. */
export function siblingsOf(branches: Branches, id: string): readonly string[] {
  const node = branches.nodes.get(id);
  if (!node) return [];
  return branches.children.get(node.parent) ?? branches.roots;
}

/** The child on the active path, else the one written last. */
export function mainChild(branches: Branches, id: string): string | undefined {
  const own = childrenOf(branches, id);
  return own.find((child) => branches.nodes.get(child)?.active) ?? own.at(-1);
}

export interface Rail {
  lane: number;
  active: boolean;
}

export interface Row {
  id: string;
  kind: "node" | "fold";
  node: BranchNode;
  /** Nodes of a fold, from the top down. */
  folded: readonly string[];
  /** Its rail; rail 0 is the active path. */
  lane: number;
  /** Rails that pass beside it to rows further down. */
  passing: readonly Rail[];
  /** The rail that it branches off from, if not its own. */
  from: number | null;
  /** Whether its rail continues below it. */
  goesOn: boolean;
  active: boolean;
}

/** Nodes that are never folded: the current one, forks, their first nodes, labels, compactions, nodes that wait for a
 * person, beginnings and ends. */
export function isLandmark(branches: Branches, node: BranchNode): boolean {
  const own = childrenOf(branches, node.id);
  return (
    own.length !== 1 ||
    node.is_leaf ||
    node.label !== "" ||
    node.can_resume ||
    node.kind === "compaction" ||
    node.kind === "summary" ||
    node.kind === "unanswered" ||
    node.kind === "start" ||
    !branches.nodes.has(node.parent) ||
    siblingsOf(branches, node.id).length > 1
  );
}

/** The rows from the top down. With `fold`, runs of more than one plain node are one row, except those whose first
 * node is in `unfolded`. No recursion: a session may be 100,000 nodes deep. */
export function layOut(branches: Branches, fold: boolean, unfolded: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  interface Task {
    id: string;
    lane: number;
    from: number | null;
    /** Rails of forks above with branches still to draw. */
    passing: readonly Rail[];
  }
  const tasks: Task[] = branches.roots.toReversed().map((id) => ({ id, lane: 0, from: null, passing: [] }));
  for (let task = tasks.pop(); task; task = tasks.pop()) {
    const node = branches.nodes.get(task.id)!;
    const run = fold && !unfolded.has(node.id) ? plainRun(branches, node) : [];
    const last = branches.nodes.get(run.at(-1) ?? node.id)!;
    const own = childrenOf(branches, last.id);
    rows.push({
      id: run.length ? `fold-${node.id}` : node.id,
      kind: run.length ? "fold" : "node",
      node,
      folded: run,
      lane: task.lane,
      passing: task.passing,
      from: task.from,
      goesOn: own.length > 0,
      active: node.active,
    });
    const main = mainChild(branches, last.id);
    if (main === undefined) continue;
    const others = own.filter((child) => child !== main);
    // The last one pushed is laid out first: other branches while the main rail passes, then the main one.
    tasks.push({ id: main, lane: task.lane, from: null, passing: task.passing });
    const rail = { lane: task.lane, active: branches.nodes.get(main)?.active ?? false };
    for (const child of others.toReversed()) {
      tasks.push({ id: child, lane: task.lane + 1, from: task.lane, passing: [...task.passing, rail] });
    }
  }
  return rows;
}

function plainRun(branches: Branches, first: BranchNode): string[] {
  const run: string[] = [];
  let node: BranchNode | undefined = first;
  while (node && !isLandmark(branches, node)) {
    run.push(node.id);
    node = branches.nodes.get(childrenOf(branches, node.id)[0] ?? "");
  }
  return run.length > 1 ? run : [];
}

/** An unanswered request with nothing after it: it can be resumed, wherever the session stands. */
export function isWaiting(branches: Branches, node: BranchNode): boolean {
  return node.can_resume || (node.kind === "unanswered" && childrenOf(branches, node.id).length === 0);
}

/** The row that shows a node, or the fold that contains it. */
export function rowOf(rows: readonly Row[], id: string): number {
  const place = rows.findIndex((row) => row.id === id);
  return place >= 0 ? place : rows.findIndex((row) => row.folded.includes(id));
}

/** The next row along a row's path: its parent, or its continuation. */
export function step(branches: Branches, rows: readonly Row[], at: number, by: 1 | -1): number {
  const row = rows[at];
  if (!row) return at;
  const end = row.folded.at(-1) ?? row.node.id;
  const to = by < 0 ? row.node.parent : (mainChild(branches, end) ?? "");
  const found = rowOf(rows, to);
  return found < 0 ? at : found;
}

/** The sibling beside it, later ones to the right; without one, the row itself. */
export function stepAside(branches: Branches, rows: readonly Row[], at: number, by: 1 | -1): number {
  const row = rows[at];
  if (!row) return at;
  const own = siblingsOf(branches, row.node.id);
  const next = own[own.indexOf(row.node.id) + by];
  const found = next === undefined ? -1 : rowOf(rows, next);
  return found < 0 ? at : found;
}

/** The next row below with more than one branch; wraps around after the last. */
export function nextFork(branches: Branches, rows: readonly Row[], at: number): number {
  const isFork = (row: Row): boolean => childrenOf(branches, row.node.id).length > 1;
  const below = rows.findIndex((row, place) => place > at && isFork(row));
  const found = below >= 0 ? below : rows.findIndex(isFork);
  return found < 0 ? at : found;
}

export function forksOf(branches: Branches): number {
  let forks = 0;
  for (const own of branches.children.values()) if (own.length > 1) forks++;
  return forks;
}

/** The position of a row, for screen readers. */
export function sayPlace(branches: Branches, row: Row): string {
  const node = row.node;
  const own = siblingsOf(branches, node.id);
  const below = childrenOf(branches, node.id).length;
  return [
    own.length > 1 ? `branch ${own.indexOf(node.id) + 1} of ${own.length}` : "",
    row.kind === "node" && below > 1 ? `fork into ${below}` : "",
    row.kind === "fold" ? "folded" : "",
    node.active && !node.is_leaf ? "on the active path" : "",
  ]
    .filter(Boolean)
    .join(", ");
}

/** The path from the start to a node: its depth, and the forks on the way. */
export function wayTo(branches: Branches, id: string): { depth: number; forks: { id: string; place: number; of: number }[] } {
  const forks: { id: string; place: number; of: number }[] = [];
  let depth = 0;
  for (let node = branches.nodes.get(id); node; node = branches.nodes.get(node.parent)) {
    depth++;
    const own = siblingsOf(branches, node.id);
    if (own.length > 1) forks.unshift({ id: node.id, place: own.indexOf(node.id) + 1, of: own.length });
    if (node.parent === node.id) break;
  }
  return { depth, forks };
}

/** The maximum number of rails drawn beside a row; deeper rows show their depth instead. */
export const MOST_LANES = 12;
