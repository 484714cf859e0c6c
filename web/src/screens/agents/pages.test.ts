import { describe, expect, it } from "vitest";
import { byFile, inside, level, marksOf, tabOf } from "./pages";

const problem = (path: string, line: number | null, words: string, kind: "error" | "warning" = "error") => ({
  path,
  line,
  problem: words,
  level: kind,
});

describe("problems of an agent", () => {
  const problems = [
    problem("/a/rules/x.md", 7, "odd", "warning"),
    problem("/a/agent.yaml", null, "no name"),
    problem("/a/rules/x.md", 9, "broken"),
    problem("/a/rules/x.md", 7, "also odd"),
  ];

  it("are grouped by file, errors first, then by line", () => {
    expect(byFile("/a/", problems).map(({ file, problems: found }) => [file, found.map((each) => each.line)])).toEqual([
      ["rules/x.md", [7, 9, 7]],
      ["agent.yaml", [null]],
    ]);
  });

  it("mark the lines of their file", () => {
    expect(marksOf("/a", "rules/x.md", problems)).toEqual({ 7: "odd; also odd", 9: "broken" });
    expect(marksOf("/a", "agent.yaml", problems)).toEqual({ 1: "no name" });
  });
});

it("a file is edited on the tab of what it is", () => {
  const files = [{ path: "mcp.json", bytes: 1, kind: "servers" as const }];
  expect(tabOf("mcp.json", files)).toBe("tools");
  expect(tabOf("rules/new.md", files)).toBe("rules");
  expect(tabOf("agent.yaml", files)).toBe("persona");
});

it("paths outside of the agent's folder stay whole", () => {
  expect(inside("/a/b", "/a/bc/x.md")).toBe("/a/bc/x.md");
  expect(inside("/a/b", "/a/b/x.md")).toBe("x.md");
});

it("levels have three digits", () => {
  expect(level({ level: 3 })).toBe("003");
});
