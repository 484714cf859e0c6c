import { describe, expect, it } from "vitest";
import { barOf, choose, describe as describeRow, heightOf, inOrder, inSight, labelStep, pitchOf, signOf, ticksOf, tickWords, totalWords } from "./bars";
import type { TimelineRow, TimelineTotals } from "./types";

const row = (more: Partial<TimelineRow>): TimelineRow =>
  ({
    id: "r", purpose: "turn", at: 0, target: "t", request: null, tokens: null, input: null, cached: null, fresh: null, written: null,
    output: null, cost: null, uncached_cost: null, saved: null, seconds: null, idle: null, boundaries: [], broke: null, ...more,
  }) as TimelineRow;

describe("a bar", () => {
  it("is cached and new, which together are the input", () => {
    const bar = barOf(row({ input: 100, cached: 90, fresh: 10 }), "tokens");
    expect(bar.parts).toEqual([{ fill: "cached", value: 90 }, { fill: "new", value: 10 }]);
    expect(heightOf(bar)).toBe(100);
  });

  it("never draws more cached than there was input", () => {
    expect(heightOf(barOf(row({ input: 100, cached: 130 }), "tokens"))).toBe(100);
  });

  it("is unknown where nothing was reported, and not new", () => {
    expect(barOf(row({ input: 100 }), "tokens").parts).toEqual([{ fill: "unknown", value: 100 }]);
  });

  it("of a request that was never answered has the size that was sent", () => {
    expect(barOf(row({ tokens: 70 }), "tokens").parts).toEqual([{ fill: "unknown", value: 70 }]);
    expect(describeRow(row({ tokens: 70 }))).toContain("~70");
  });

  it("is a sign and no 0 where a price or a time is not known", () => {
    for (const measure of ["money", "seconds"] as const) expect(barOf(row({ input: 5, cached: 0 }), measure)).toMatchObject({ isUnknown: true, parts: [] });
  });

  it("shows what a break cost as a part of what was paid", () => {
    const bar = barOf(row({ cost: 0.1, uncached_cost: 0.3, broke: { price: 0.04 } as TimelineRow["broke"] }), "money");
    expect(bar.parts.map((part) => part.fill)).toEqual(["new", "lost"]);
    expect(bar.parts.reduce((sum, part) => sum + part.value, 0)).toBeCloseTo(0.1);
    expect(heightOf(bar)).toBe(0.3);
  });
});

describe("scales", () => {
  it("have round numbers that reach the greatest", () => {
    expect(ticksOf(16_104)).toEqual([0, 5000, 10_000, 15_000, 20_000]);
    expect(ticksOf(0)).toEqual([0, 1]);
    for (const most of [0.0004, 0.03, 1, 7, 99, 12345, 2e6]) {
      const ticks = ticksOf(most);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most * 0.999999);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }
  });

  it("are written so that neighbours differ", () => {
    for (const most of [0.0004, 0.012, 0.3, 4, 900]) {
      const ticks = ticksOf(most);
      const words = ticks.map((tick) => tickWords(tick, "money", ticks[1]!));
      expect(new Set(words).size).toBe(words.length);
    }
    expect(tickWords(20_000, "tokens", 5000)).toBe("20k");
  });

  it("draw only what is in sight of thousands", () => {
    const { pitch, width } = pitchOf(5000, 800);
    expect(width).toBe(45_000);
    const [first, last] = inSight(5000, pitch, 20_000, 800);
    expect(last - first).toBeLessThan(100);
    expect(pitchOf(3, 800)).toEqual({ pitch: 60, width: 800 });
    expect(labelStep(9, 5000) * 9).toBeGreaterThan(30);
  });
});

describe("totals", () => {
  const totals = {
    requests: 12, reported: 11, unknown: 1, unanswered: 0, input: 1, cached: 1, written: 0, output: 0, reported_input: 1,
    hit: 0.931, cost: 2, unpriced: 0, saved: 1.12, read_discount: 1.3, write_premium: 0.18, breaks: [],
  } as unknown as TimelineTotals;

  it("say of how many the rate is, and count the unknown", () => {
    const words = totalWords(totals);
    expect(words.hit).toBe("93.1%");
    expect(words.of).toBe("of 11 reported · 1 unknown");
    expect(words.savedOf).toContain("writing cost ~$0.18 extra");
  });

  it("are unknown, and not 0%, where nobody reported", () => {
    expect(totalWords({ ...totals, hit: null, reported: 0, saved: null }).hit).toBe("unknown");
    expect(totalWords({ ...totals, saved: null }).saved).toBe("unknown");
  });
});

it("marks every kind of break with a shape of its own", () => {
  const kinds = ["expected", "expired", "moved", "missed"] as const;
  expect(new Set(kinds.map((kind) => signOf(kind, 6, 6))).size).toBe(kinds.length);
});

describe("choosing two", () => {
  it("keeps the last two, and gives them in order of sending", () => {
    expect(choose(["a", "b"], "c")).toEqual(["b", "c"]);
    expect(choose(["a", "b"], "a")).toEqual(["b"]);
    expect(inOrder([row({ id: "a" }), row({ id: "b" })], ["b", "a"])).toEqual(["a", "b"]);
  });
});
