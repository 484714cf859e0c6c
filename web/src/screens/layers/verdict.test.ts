import { expect, it } from "vitest";
import type { SessionCheck } from "./types";
import { verdictOf } from "./verdict";

const check = (more: Partial<SessionCheck>): SessionCheck => ({
  session: "s", state: "sound", sound: true, requests: 4, rebuilt: 4, wrong: [], uncovered: [], problems: [], damage: [], seconds: 0.1, ...more,
});

it("calls verified only what is proven", () => {
  expect(verdictOf(check({})).label).toBe("verified");
  expect(verdictOf(check({ state: "not_covered", rebuilt: 3 })).label).toBe("3 of 4 verified");
  expect(verdictOf(check({ state: "broken" })).tone).toBe("bad");
  expect(verdictOf(check({ requests: 0, rebuilt: 0 })).label).toBe("nothing to verify");
});
