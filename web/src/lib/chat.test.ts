import { describe, expect, test } from "vitest";
import { diffLines, readCall } from "./arguments";
import { groupLeftOut } from "./left_out";
import { complete, mentionAt, quote } from "./mention";
import { partsOfSegments, prefixWords } from "./preview.svelte";
import { foldAt, type Row } from "./session.svelte";

describe("arguments of a call", () => {
  test("are read by name; an edit is lines that go and come", () => {
    const call = readCall(JSON.stringify({ path: "a.md", old_string: "x\ny", new_string: "x\nz" }), "edit_file");
    expect(call.path).toBe("a.md");
    expect(call.arguments.map((one) => one.name)).toEqual(["path"]);
    expect(diffLines(call.changes[0]!)).toEqual([
      { kind: "same", text: "x" },
      { kind: "gone", text: "y" },
      { kind: "new", text: "z" },
    ]);
  });

  test("of a file that is written are all new lines", () => {
    const call = readCall('{"path":"n.md","content":"a\\nb"}', "write_file");
    expect(diffLines(call.changes[0]!).map((line) => line.kind)).toEqual(["new", "new"]);
    expect(readCall('{"path":"n.md","content":"a"}', "send_mail").changes).toEqual([]);
  });

  test("that are no JSON are shown as the model wrote them", () => {
    expect(readCall('{"path": "a', "x").raw).toBe('{"path": "a');
  });
});

describe("a mention", () => {
  test("is what stands behind an @ at the caret", () => {
    expect(mentionAt("see @pla", 8)).toEqual({ start: 4, end: 8, query: "pla" });
    expect(mentionAt('see @"my no', 11)?.query).toBe("my no");
    expect(mentionAt("mail a@b.c", 10)).toBeNull();
    expect(mentionAt("see @plan.md and", 16)).toBeNull();
  });

  test("is replaced by what was chosen", () => {
    const mention = mentionAt("see @pla now", 8)!;
    expect(complete("see @pla now", mention, "plan.md")).toEqual({ text: "see @plan.md now", caret: 12 });
    expect(complete("@no", mentionAt("@no", 3)!, "notes/")).toEqual({ text: "@notes/", caret: 7 });
  });

  test("a quote cannot be closed by what is quoted", () => {
    expect(quote("a.md", "x\n````\ny")).toBe("a.md:\n`````\nx\n````\ny\n`````\n");
  });
});

describe("the request to come", () => {
  const segment = (layer: string, tokens: number) => ({ layer, role: "user", source: "", tokens, cached: true, digest: "" }) as never;
  const segments = [segment("tools", 10), segment("L1", 20), segment("L1", 20), segment("L5", 5)];

  test("is drawn in wire order, cached up to where the cache should reach", () => {
    const parts = partsOfSegments({ segments, cached: 35, agreement: {} as never });
    expect(parts.map(({ layer, tokens, fill }) => [layer, tokens, fill])).toEqual([
      ["tools", 10, "cached"],
      ["L1", 25, "cached"],
      ["L1", 15, "new"],
      ["L5", 5, "new"],
    ]);
  });

  test("that nobody can know of says what agrees, never what is cached", () => {
    const parts = partsOfSegments({ segments, cached: null, agreement: { tokens: 10 } as never });
    expect(parts.map((part) => part.fill)).toEqual(["agrees", "new", "new"]);
  });

  test("says what breaks the prefix", () => {
    expect(prefixWords({ agreement: { first: true } as never, boundaries: [], rewrite: null }).tone).toBe("plain");
    expect(prefixWords({ agreement: {} as never, boundaries: [], rewrite: null })).toMatchObject({ tone: "good", text: "prefix intact" });
    const broke = { layer: "L1", segment: 0, source: "memory", reason: "memory changed", before: "" };
    expect(prefixWords({ agreement: { broke } as never, boundaries: [], rewrite: null }).text).toBe("breaks at L1 (memory): memory changed");
    const boundaries = [{ kind: "expired" as const, reason: "2531 s since the last request; the cache lives 300 s" }];
    expect(prefixWords({ agreement: {} as never, boundaries, rewrite: null })).toEqual({
      tone: "warn", text: "42 min since the last request; the cache lives 5 min", short: "cache expired",
    });
  });
});

describe("what was left out", () => {
  test("is told once for each reason", () => {
    const row = (what: string, detail: string, tokens = 0) => ({ what, reason: "window", detail, tokens }) as never;
    expect(groupLeftOut([row("note:a.md", "no room", 5), row("note:b.md", "no room", 7), row("rule:x", "")])).toEqual([
      { why: "no room", names: ["a.md", "b.md"], tokens: 12 },
      { why: "window", names: ["x"], tokens: 0 },
    ]);
  });
});

describe("a run of tools", () => {
  const row = (id: string, kind: string, calls = 0) => ({ id, kind, calls: Array.from({ length: calls }, (_, n) => ({ id: `${id}${n}` })) }) as unknown as Row;
  const rows = [row("q", "question"), row("a", "answer", 2), row("b", "answer", 1), row("c", "answer"), undefined];

  test("is one line at its head, and the answer stands for itself", () => {
    expect(foldAt(rows, 1)?.run.map((one) => one.id)).toEqual(["a", "b"]);
    expect(foldAt(rows, 2)?.hidden).toBe(true);
    expect(foldAt(rows, 3)).toMatchObject({ run: [], hidden: false });
    expect(foldAt(rows, 4)).toBeUndefined();
  });
});
