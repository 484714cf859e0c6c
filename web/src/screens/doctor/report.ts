/** A report in words and bars.
 *
  * Laws: money is at list price and labelled as such. Requests without a known price are in no total; they are
  * listed separately, and their bars are measured in tokens and slanted. */

import { certaintyWords, type Certainty } from "../../lib/breaks";
import { bytes, count, exact, money, percent, seconds, short } from "../../lib/numbers";
import type { CauseSum, DoctorPage, FindingRow, ReportTotals } from "./types";

export interface CauseBar {
  id: string;
  cause: CauseSum;
  /** Of the longest bar, 0 to 1. */
  share: number;
  isPriced: boolean;
}

export const keyOf = (cause: { label: string; blame: string | null }): string => `${cause.label}|${cause.blame ?? ""}`;

/** A bar per cause. Priced ones are relative to the most expensive; those without a price to the one with the
 * most tokens, since no rate between the two is known. */
export function barsOf(causes: readonly CauseSum[]): CauseBar[] {
  const dearest = Math.max(0, ...causes.map((cause) => cause.extra ?? 0));
  const longest = Math.max(0, ...causes.map((cause) => cause.tokens));
  return causes.map((cause) => ({
    id: keyOf(cause),
    cause,
    share: cause.extra === null ? ratio(cause.tokens, longest) : ratio(cause.extra, dearest),
    isPriced: cause.extra !== null,
  }));
}

function ratio(part: number, whole: number): number {
  return whole > 0 ? Math.max(0, Math.min(1, part / whole)) : 0;
}

/** `12 proven, 3 likely`. */
export function certaintiesOf(cause: CauseSum): string {
  return Object.entries(cause.certainties)
    .map(([certainty, times]) => `${exact(times)} ${certaintyWords(certainty as Certainty).word}`)
    .join(", ");
}

/** A share of a sum; unknown if either is, and 0 if there was nothing to lose. */
function shareOf(part: number | null, whole: number | null): number | null {
  if (part === null || whole === null) return null;
  return whole > 0 ? part / whole : 0;
}

function sumOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

export interface Headline {
  lost: string;
  lostOf: string;
  avoidable: string;
  avoidableOf: string;
  paid: string;
  paidOf: string;
  read: string;
  readOf: string;
}

/** Whether any request has a known price. */
export function isPriced(totals: ReportTotals): boolean {
  return totals.requests > totals.unpriced;
}

export function headlineOf(page: DoctorPage): Headline {
  const totals = page.totals;
  const priced = isPriced(totals);
  const unpriced = totals.unpriced ? `${count(totals.unpriced, "request")} of unknown price excluded` : "input and output";
  const reported = totals.requests - totals.unreported;
  return {
    lost: priced && totals.lost_cost !== null ? money(totals.lost_cost) : `${short(totals.lost)} tokens`,
    lostOf: priced
      ? `${percent(page.lost_share)} of what the input cost · ${short(totals.lost)} tokens again`
      : `${percent(page.lost_share)} of the input · price unknown`,
    avoidable: priced ? money(totals.avoidable_cost) : "unknown",
    avoidableOf: priced ? `${percent(shareOf(totals.avoidable_cost, totals.lost_cost))} of the loss` : "price unknown",
    paid: priced ? money(sumOf(totals.input_cost, totals.output_cost)) : "unknown",
    paidOf: priced ? unpriced : `no known price for ${totals.unpriced_models.join(", ")}`,
    read: percent(readShare(page.requests), 1),
    readOf: totals.unreported
      ? `of ${exact(reported)} reported · ${exact(totals.unreported)} unknown`
      : `of ${short(totals.input)} tokens in ${count(totals.requests, "request")}`,
  };
}

/** The share of the input read from a cache, over requests whose provider reported it. */
export function readShare(requests: DoctorPage["requests"]): number | null {
  const reported = requests.filter((request) => request.read !== null);
  const input = reported.reduce((sum, request) => sum + request.input, 0);
  return input > 0 ? reported.reduce((sum, request) => sum + (request.read ?? 0), 0) / input : null;
}

/** `62 requests in 3 sessions of Claude Code and Codex, 4.1 MB in 3 files`. */
export function scopeOf(page: DoctorPage): string {
  const programs = page.programs.length ? ` of ${listWords(page.programs)}` : "";
  const files = page.read.files && page.read.bytes ? `, ${bytes(page.read.bytes)} in ${count(page.read.files, "file")}` : "";
  return `${count(page.totals.requests, "request")} in ${count(page.totals.sessions, "session")}${programs}${files}`;
}

export function listWords(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** Where it happened: in which part and at which byte, or how far the cache was read. */
export function placeWords(finding: FindingRow): string {
  const place = finding.place;
  if (place.segment) return `${place.segment}${place.offset == null ? "" : `, byte ${exact(place.offset)}`}`;
  if (place.stopped === "nothing") return "nothing was read";
  if (place.stopped === "floor") return `only tools and system were read (${exact(place.start)} tokens)`;
  if (place.stopped === "end_of" && place.request) return `read up to where request ${exact(place.request)} ended (${exact(place.start)} tokens)`;
  return `${exact(place.start)} tokens were read`;
}

export function priceWords(finding: FindingRow): string {
  if (finding.paid === null || finding.would_have_cost === null) return `${exact(finding.tokens)} tokens again, list price unknown`;
  return `${money(finding.paid)} at list price instead of ${money(finding.would_have_cost)}`;
}

/** The sentence without the details shown beside it: time and session before it, place, price and certainty
 * after it. */
export function reasonOf(finding: FindingRow): string {
  const [, first = finding.sentence] = /^(.*?)(?:; (?:at [^;]+|nothing was read|read [^;]+))?; [\d,]+ tokens again/s.exec(finding.sentence) ?? [];
  const colon = first.indexOf(": ");
  const reason = colon < 0 ? first : first.slice(colon + 2);
  return reason ? reason[0]!.toUpperCase() + reason.slice(1) : finding.label;
}

export function whenWords(finding: FindingRow): string {
  return finding.gap === null ? "" : `${seconds(finding.gap)} after the previous request`;
}

/** Findings of a cause, or all; the most expensive first, then those with the most tokens. */
export function dearest(findings: readonly FindingRow[], cause: string): FindingRow[] {
  const of = (finding: FindingRow): number => finding.extra ?? -1;
  const wanted = cause ? findings.filter((finding) => keyOf({ label: causeLabel(finding), blame: finding.blame }) === cause) : findings;
  return wanted.toSorted((a, b) => of(b) - of(a) || b.tokens - a.tokens);
}

/** The label under which the report sums a finding: with an unknown cause, by its place. */
const OPEN: Record<string, string> = {
  nothing: "nothing was read, cause open",
  floor: "only tools and system read, cause open",
  end_of: "read to an older end, cause open",
  inside: "stopped in between, cause open",
};

export function causeLabel(finding: FindingRow): string {
  return finding.cause === "unexplained" ? (OPEN[finding.place.stopped ?? "inside"] ?? finding.label) : finding.label;
}

/** The request of one of our own findings: its id is the last part. */
export function ownRequest(finding: FindingRow): string {
  return finding.source === "lamina" ? (finding.request_id.split("/").at(-1) ?? "") : "";
}

/** A dropped file as the server accepts it: text if it is text, else base64. */
export async function readUpload(file: File): Promise<{ name: string; content: string; encoding: "utf-8" | "base64" }> {
  const data = new Uint8Array(await file.arrayBuffer());
  try {
    return { name: file.name, content: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data), encoding: "utf-8" };
  } catch {
    let binary = "";
    for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
    return { name: file.name, content: btoa(binary), encoding: "base64" };
  }
}

/** The upload limit of the server. */
export const MOST_BYTES = 32 * 2 ** 20;
