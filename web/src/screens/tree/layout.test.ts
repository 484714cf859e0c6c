import { describe, expect, it } from "vitest";
import { branchesOf, forksOf, layOut, nextFork, rowOf, sayPlace, step, stepAside, wayTo } from "./layout";
import type { BranchNode } from "./types";

const node = (id: string, parent: string, more: Partial<BranchNode> = {}): BranchNode =>
  ({
    id, parent, kind: "answer", at: 0, text: id, active: false, label: "", request: "", target: "", tokens: null, tokens_before: null,
    tokens_after: null, calls: 0, interrupted: false, is_leaf: false, can_resume: false, depth: 0, children: 0, ...more,
  });

/** start - q1 - a1 - (q2 - a2*) (q3 - a3) (q4, never answered) */
const small = [
  node("start", "", { kind: "start", active: true }),
  node("q1", "start", { kind: "question", active: true }),
  node("a1", "q1", { active: true }),
  node("q3", "a1", { kind: "question" }),
  node("a3", "q3", { label: "weekend" }),
  node("q2", "a1", { kind: "question", active: true }),
  node("a2", "q2", { active: true, is_leaf: true }),
  node("q4", "a1", { kind: "unanswered", can_resume: true }),
];
const branches = branchesOf(small);
const rows = layOut(branches, false, new Set());
const at = (id: string): number => rowOf(rows, id);

describe("rows", () => {
  it("hold every node once, below its parent, the active path on the leftmost rail", () => {
    expect(rows.map((row) => row.id)).toEqual(["start", "q1", "a1", "q3", "a3", "q4", "q2", "a2"]);
    for (const row of rows) if (row.node.parent) expect(at(row.node.parent)).toBeLessThan(at(row.id));
    expect(rows.map((row) => row.lane)).toEqual([0, 0, 0, 1, 1, 1, 0, 0]);
    expect(rows.filter((row) => row.active).every((row) => row.lane === 0)).toBe(true);
  });

  it("let the rail of what comes later pass", () => {
    expect(rows[at("a3")]?.passing).toEqual([{ lane: 0, active: true }]);
    expect(rows[at("q3")]?.from).toBe(0);
    expect(rows[at("q2")]?.from).toBeNull();
  });

  it("are as quick for 100,000 messages in a line", () => {
    const long = Array.from({ length: 100_000 }, (_, place) => node(`n${place}`, place ? `n${place - 1}` : "", { active: true }));
    const many = branchesOf(long);
    expect(layOut(many, false, new Set()).length).toBe(100_000);
    const folded = layOut(many, true, new Set());
    expect(folded.map((row) => row.kind)).toEqual(["node", "fold", "node"]);
    expect(many.behind.get("n0")).toBe(99_999);
  });
});

describe("folds", () => {
  const long = branchesOf([
    node("start", "", { kind: "start", active: true }),
    ...Array.from({ length: 6 }, (_, place) => node(`n${place}`, place ? `n${place - 1}` : "start", { active: true, label: place === 2 ? "here" : "" })),
    node("end", "n5", { active: true, is_leaf: true }),
  ]);

  it("leave landmarks in sight, and lose no node", () => {
    const folded = layOut(long, true, new Set());
    expect(folded.map((row) => row.id)).toEqual(["start", "fold-n0", "n2", "fold-n3", "end"]);
    expect(folded.reduce((sum, row) => sum + Math.max(1, row.folded.length), 0)).toBe(long.nodes.size);
    expect(rowOf(folded, "n4")).toBe(3);
  });

  it("open where one asks", () => {
    const open = layOut(long, true, new Set(["n3", "n4", "n5"]));
    expect(open.map((row) => row.id)).toEqual(["start", "fold-n0", "n2", "n3", "n4", "n5", "end"]);
  });
});

describe("keys", () => {
  it("up and down follow the path, also past branches that stand between", () => {
    expect(rows[step(branches, rows, at("a1"), 1)]?.id).toBe("q2");
    expect(rows[step(branches, rows, at("q2"), -1)]?.id).toBe("a1");
    expect(step(branches, rows, at("a2"), 1)).toBe(at("a2"));
    expect(step(branches, rows, at("start"), -1)).toBe(at("start"));
  });

  it("left and right go to the branches beside, in order of writing", () => {
    expect(rows[stepAside(branches, rows, at("q2"), 1)]?.id).toBe("q4");
    expect(rows[stepAside(branches, rows, at("q2"), -1)]?.id).toBe("q3");
    expect(stepAside(branches, rows, at("q3"), -1)).toBe(at("q3"));
  });

  it("n finds the next fork and goes round", () => {
    expect(rows[nextFork(branches, rows, 0)]?.id).toBe("a1");
    expect(rows[nextFork(branches, rows, at("a2"))]?.id).toBe("a1");
    expect(forksOf(branches)).toBe(1);
  });
});

describe("words", () => {
  it("say where one is", () => {
    expect(sayPlace(branches, rows[at("a2")]!)).toBe("");
    expect(sayPlace(branches, rows[at("q4")]!)).toBe("branch 3 of 3");
    expect(sayPlace(branches, rows[at("q2")]!)).toBe("branch 2 of 3, on the active path");
    expect(sayPlace(branches, rows[at("a1")]!)).toBe("fork into 3, on the active path");
    expect(wayTo(branches, "a3")).toEqual({ depth: 5, forks: [{ id: "q3", place: 1, of: 3 }] });
  });
});
