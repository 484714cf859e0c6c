import { describe, expect, it } from "vitest";
import { outlineOf, roomOf, runsOf, sentWords, stateWords } from "./runs";
import type { GoneSegment, LayerShare, SegmentRow } from "./types";

let start = 0;
function segment(index: number, layer: SegmentRow["layer"], tokens: number, more: Partial<SegmentRow> = {}): SegmentRow {
  if (index === 0) start = 0;
  const row = { index, layer, tokens, start, state: "new", first_number: 1, kind: "text", content: null, ...more } as SegmentRow;
  start += tokens;
  return row;
}

const sum = (runs: { tokens: number }[]): number => runs.reduce((total, run) => total + run.tokens, 0);

describe("runs", () => {
  it("hold every token once, wherever the provider stopped reading", () => {
    const segments = [segment(0, "tools", 100), segment(1, "L1", 50), segment(2, "L4", 300), segment(3, "L5", 7)];
    for (let cached = 0; cached <= 457; cached++) expect(sum(runsOf(segments, cached, 150))).toBe(457);
    expect(sum(runsOf(segments, null, 150))).toBe(457);
  });

  it("split a segment where reading stopped within it", () => {
    const runs = runsOf([segment(0, "L4", 100, { state: "cached" }), segment(1, "L5", 10)], 60, 0);
    expect(runs.map((run) => [run.layer, run.state, run.tokens])).toEqual([
      ["L4", "cached", 60],
      ["L4", "new", 40],
      ["L5", "new", 10],
    ]);
  });

  it("join segments of one layer and one state", () => {
    const runs = runsOf([segment(0, "L2", 10), segment(1, "L2", 20), segment(2, "L4", 5)], null, 0);
    expect(runs.map((run) => [run.layer, run.tokens, run.segment])).toEqual([
      ["L2", 30, 0],
      ["L4", 5, 2],
    ]);
  });

  it("say that it agrees and was not reported, rather than that nothing was cached", () => {
    const runs = runsOf([segment(0, "L1", 10, { state: "agrees" }), segment(1, "L5", 4)], null, 10);
    expect(runs.map((run) => run.state)).toEqual(["agrees", "new"]);
    expect(stateWords("agrees", false, true)).toBe("matches, not reported");
    expect(stateWords("agrees", true, true)).toBe("matches, not read");
  });

  it("keep what cannot be compared unknown", () => {
    expect(runsOf([segment(0, "L1", 10, { state: "unknown" })], null, 0)[0]?.state).toBe("unknown");
  });
});

describe("room", () => {
  it("has nothing free below nothing, and no picture without a window", () => {
    expect(roomOf(30_000, 32_000, 4_000)).toMatchObject({ free: 0, scale: 34_000 });
    expect(roomOf(1_000, 32_000, 4_000)).toMatchObject({ free: 27_000, scale: 32_000 });
    expect(roomOf(1_000, 0, 0)).toBeNull();
  });
});

describe("outline", () => {
  const layers = [{ layer: "L1" }, { layer: "L5" }] as LayerShare[];
  const segments = [segment(0, "L1", 5), segment(1, "L1", 6), segment(2, "L5", 1)];
  const gone = [{ index: 4, tokens: 9 }] as GoneSegment[];

  it("lists layers with their segments, and what is gone last", () => {
    const rows = outlineOf(layers, segments, gone, new Set());
    expect(rows.map((row) => row.id)).toEqual(["L1", "s0", "s1", "L5", "s2", "gone", "g4"]);
  });

  it("hides the segments of what is closed", () => {
    expect(outlineOf(layers, segments, gone, new Set(["L1", "gone"])).map((row) => row.id)).toEqual(["L1", "L5", "s2", "gone"]);
  });

  it("says where bytes were first sent", () => {
    expect(sentWords(segment(0, "L1", 1, { first_number: 3 }), 5)).toBe("sent at 3");
    expect(sentWords(segment(0, "L1", 1, { first_number: 5 }), 5)).toBe("first sent here");
    expect(sentWords(segment(0, "L1", 1, { first_number: null }), 5)).toBe("");
  });
});
