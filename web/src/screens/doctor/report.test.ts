import { describe, expect, it } from "vitest";
import { barsOf, causeLabel, certaintiesOf, dearest, headlineOf, listWords, ownRequest, placeWords, priceWords, readShare, readUpload, reasonOf } from "./report";
import type { CauseSum, DoctorPage, FindingRow } from "./types";

const cause = (more: Partial<CauseSum>): CauseSum => ({
  cause: "clock", label: "clock", kind: "moved", blame: "you", findings: 1, tokens: 100, extra: 0.5, avoidable: 0.5, certainties: { proven: 1 }, unpriced: 0, ...more,
});
const finding = (more: Partial<FindingRow>): FindingRow =>
  ({
    id: "f", cause: "clock", label: "clock", blame: "you", source: "claude_code", request_id: "s/r7", tokens: 100, extra: 0.5, paid: 0.6,
    would_have_cost: 0.1, place: { start: 0, end: 1, segment: "", stopped: null, request: null, offset: null, layer: null }, ...more,
  }) as FindingRow;

describe("bars", () => {
  it("of unknown price are measured in tokens and marked", () => {
    const bars = barsOf([cause({}), cause({ label: "b", extra: 0.25 }), cause({ label: "c", extra: null, tokens: 50 })]);
    expect(bars.map((bar) => [bar.share, bar.isPriced])).toEqual([[1, true], [0.5, true], [0.5, false]]);
  });
  it("say how sure the findings are", () => {
    expect(certaintiesOf(cause({ certainties: { proven: 2, located: 1 } }))).toBe("2 proven, 1 located, cause unknown");
  });
});

describe("the headline", () => {
  const page = {
    prices_of: "2026-11-01", lost_share: 0.22, requests: [],
    totals: { sessions: 1, requests: 3, input: 1000, read: 0, unpriced: 3, unpriced_models: ["m"], unreported: 3, lost: 220, lost_cost: null, avoidable_cost: null, input_cost: null, output_cost: null, unpriced_findings: 1 },
  } as unknown as DoctorPage;
  it("never says $0 where no price is known", () => {
    const head = headlineOf(page);
    expect(head.lost).toBe("220 tokens");
    expect([head.avoidable, head.paid, head.read]).toEqual(["unknown", "unknown", "unknown"]);
  });
  it("takes the rate of those alone who reported", () => {
    const requests = [{ input: 100, read: 90 }, { input: 900, read: null }] as DoctorPage["requests"];
    expect(readShare(requests)).toBe(0.9);
    expect(readShare([])).toBeNull();
  });
});

describe("a finding", () => {
  it("says where, and what was paid instead of what", () => {
    expect(placeWords(finding({ place: { ...finding({}).place, segment: "system", offset: 212 } }))).toBe("system, byte 212");
    expect(placeWords(finding({ place: { ...finding({}).place, stopped: "nothing" } }))).toBe("nothing was read");
    expect(priceWords(finding({}))).toBe("~$0.60 at list price instead of ~$0.10");
    expect(priceWords(finding({ paid: null }))).toContain("list price unknown");
  });
  it("is told without what stands beside it", () => {
    expect(reasonOf(finding({ sentence: "11-12 03:40 abc request 7: the cache had expired (41 min; entries live 5 min); nothing was read; 7,168 tokens again, $0.02 instead of $0.01; proven" }))).toBe(
      "The cache had expired (41 min; entries live 5 min)",
    );
    expect(reasonOf(finding({ sentence: "abc request 7: the system prompt changed; at segment 2 byte 7; 10 tokens again; proven" }))).toBe("The system prompt changed");
  });
  it("stands under the label that the report sums it under", () => {
    const open = finding({ cause: "unexplained", label: "cause open", place: { ...finding({}).place, stopped: "floor" } });
    expect(causeLabel(open)).toBe("only tools and system read, cause open");
    expect(dearest([finding({ id: "a", extra: 0.1 }), finding({ id: "b", extra: null }), finding({ id: "c", extra: 0.4 })], "").map((one) => one.id)).toEqual(["c", "a", "b"]);
    expect(dearest([finding({}), open], "clock|you")).toHaveLength(1);
  });
  it("leads to the request only if that is ours", () => {
    expect(ownRequest(finding({}))).toBe("");
    expect(ownRequest(finding({ source: "lamina" }))).toBe("r7");
  });
});

it("lists as people do", () => {
  expect(listWords(["pi", "Codex", "HAR"])).toBe("pi, Codex and HAR");
  expect(listWords([])).toBe("");
});

it("sends text as text and bytes as base64", async () => {
  expect(await readUpload(new File(["{}\n"], "a.jsonl"))).toEqual({ name: "a.jsonl", content: "{}\n", encoding: "utf-8" });
  expect(await readUpload(new File([new Uint8Array([255, 0])], "b"))).toEqual({ name: "b", content: "/wA=", encoding: "base64" });
});
