/** The branches of a session as rows with rails, like the graph of a version history.
 *
 * Laws: every node is in one row, or in one fold. A node stands below its parent. At a fork the branches
 * that are not gone on with come first, each on a rail further right, and the one that is goes on straight
 * down: the active path is always the leftmost rail. */

import type { BranchNode } from "./types";

export interface Branches {
  nodes: ReadonlyMap<string, BranchNode>;
  children: ReadonlyMap<string, readonly string[]>;
  roots: readonly string[];
  /** How many nodes stand below each, on all branches. */
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
  // Parents come before their children, so one look at each from the end is enough.
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

/** All that stand in the place of a node, itself among them, in order of writing. */
export function siblingsOf(branches: Branches, id: string): readonly string[] {
  const node = branches.nodes.get(id);
  if (!node) return [];
  return branches.children.get(node.parent) ?? branches.roots;
}

/** The child that is gone on with, else the one written last. */
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
  /** On which rail it stands; rail 0 is the active path. */
  lane: number;
  /** Rails that pass beside it, on the way to what comes further down. */
  passing: readonly Rail[];
  /** Where the rail above comes from, if that is not its own. */
  from: number | null;
  /** Whether its rail goes on below it. */
  goesOn: boolean;
  active: boolean;
}

/** What is never folded away: where one is, forks, what a fork begins with, labels, compactions, what
 * waits for a person, beginnings and ends. */
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

/** The rows from the top down. With `fold`, runs of more than one plain node are one row, but for those
 * whose first node is in `unfolded`. No recursion: a session may be 100,000 nodes deep. */
export function layOut(branches: Branches, fold: boolean, unfolded: ReadonlySet<string>): Row[] {
  const rows: Row[] = [];
  interface Task {
    id: string;
    lane: number;
    from: number | null;
    /** Rails of forks above that still have branches to come. */
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
    // Pushed last is laid out first: the others, each while the main rail passes, then the main one.
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

/** A request that nobody answered and nothing came after: it can be taken up, wherever the session stands. */
export function isWaiting(branches: Branches, node: BranchNode): boolean {
  return node.can_resume || (node.kind === "unanswered" && childrenOf(branches, node.id).length === 0);
}

/** The row that shows a node, or the fold that holds it. */
export function rowOf(rows: readonly Row[], id: string): number {
  const place = rows.findIndex((row) => row.id === id);
  return place >= 0 ? place : rows.findIndex((row) => row.folded.includes(id));
}

/** The next place along the path of a row: what it hangs below, or what goes on from it. */
export function step(branches: Branches, rows: readonly Row[], at: number, by: 1 | -1): number {
  const row = rows[at];
  if (!row) return at;
  const end = row.folded.at(-1) ?? row.node.id;
  const to = by < 0 ? row.node.parent : (mainChild(branches, end) ?? "");
  const found = rowOf(rows, to);
  return found < 0 ? at : found;
}

/** The sibling beside it, to the right the later one; stays where there is none. */
export function stepAside(branches: Branches, rows: readonly Row[], at: number, by: 1 | -1): number {
  const row = rows[at];
  if (!row) return at;
  const own = siblingsOf(branches, row.node.id);
  const next = own[own.indexOf(row.node.id) + by];
  const found = next === undefined ? -1 : rowOf(rows, next);
  return found < 0 ? at : found;
}

/** The next row below that has more than one branch; from the last it goes round to the first. */
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

/** Where a row stands, for those who hear it after its text. */
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

/** The way from the start to a node: how far down it is, and through which forks. */
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

/** Rails that are drawn beside a row: further ones are left out, and the row says how deep it is. */
export const MOST_LANES = 12;
