/** The next request, live while a person types: what would be sent, before it is. The latest question wins; an
 * answer to an older one is dropped. */

import { api, isAbort, ofSession, ofWorkspace } from "./api";
import type { BarPart, LayerId } from "../ui/StackBar.svelte";
import { seconds } from "./numbers";
import type { Shapes } from "./types";

const PATIENCE = 300;

export type Preview = Shapes["RequestPreview"];

export class PreviewView {
  value = $state.raw<Preview | undefined>();
  error = $state.raw<unknown>();
  loading = $state(false);
  /** Why the model itself is unavailable; shown with the way to fix it. */
  missing = $state("");
  /** Any other reason why the message would not be sent. */
  refusal = $derived(this.missing ? "" : (this.value?.refusal ?? ""));
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | null = null;
  #asked = "";

  /** Requests a preview soon, unless it is unchanged; an empty `session` means a new one. */
  want(workspace: string, session: string, body: Record<string, unknown>, stamp = ""): void {
    const asked = JSON.stringify([workspace, session, body, stamp]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#work(workspace, session, body), this.value ? PATIENCE : 0);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    this.#asked = "";
    this.loading = false;
  }

  clear(): void {
    this.stop();
    this.value = undefined;
    this.error = undefined;
  }

  async #work(workspace: string, session: string, body: Record<string, unknown>): Promise<void> {
    this.#abort?.abort();
    const abort = new AbortController();
    this.#abort = abort;
    this.loading = true;
    const url = session ? ofSession(workspace, session, "preview") : ofWorkspace(workspace, "preview");
    try {
      this.value = await api.post<Preview>(url, body, { signal: abort.signal });
      this.error = undefined;
    } catch (error) {
      if (isAbort(error) || this.#abort !== abort) return;
      this.error = error;
    } finally {
      if (this.#abort === abort) this.loading = false;
    }
  }
}

/** Segments in wire order as parts of a bar: up to `cached` tokens a provider should find, the rest is new. If
 * that is unknown, segments that match the previous request are drawn as matching only. */
export function partsOfSegments(preview: Pick<Preview, "segments" | "cached" | "agreement">): BarPart[] {
  const known = preview.cached !== null;
  const limit = known ? (preview.cached ?? 0) : (preview.agreement.tokens ?? 0);
  const parts: BarPart[] = [];
  let at = 0;
  const add = (layer: LayerId, tokens: number, held: boolean): void => {
    if (tokens <= 0) return;
    const fill = held ? (known ? "cached" : "agrees") : "new";
    const last = parts.at(-1);
    if (last && last.layer === layer && last.fill === fill) {
      last.tokens += tokens;
      return;
    }
    const note = held ? (known ? "should be cached" : "matches the previous request") : "new";
    parts.push({ id: `${layer}-${fill}-${parts.length}`, label: layer, layer, tokens, fill, note });
  };
  for (const segment of preview.segments) {
    const held = Math.max(0, Math.min(segment.tokens, limit - at));
    add(segment.layer, held, true);
    add(segment.layer, segment.tokens - held, false);
    at += segment.tokens;
  }
  return parts;
}

export interface PrefixWords {
  tone: "good" | "warn" | "plain";
  text: string;
  /** The same in two words. */
  short: string;
}

/** Whether the prefix is intact, or what breaks it. */
export function prefixWords(preview: Pick<Preview, "agreement" | "boundaries" | "rewrite">): PrefixWords {
  const { agreement, boundaries, rewrite } = preview;
  if (agreement.first) return { tone: "plain", text: "first request: nothing cached yet", short: "first request" };
  // After an expiry nothing moved.
  const short = boundaries.some((one) => one.kind === "expired") ? "cache expired" : "prefix breaks";
  if (rewrite) return { tone: "warn", text: inMinutes(rewrite.reason), short };
  const broke = agreement.broke;
  if (broke) {
    const place = `breaks at ${broke.layer}${broke.source ? ` (${broke.source})` : ""}`;
    return { tone: "warn", text: broke.reason ? `${place}: ${inMinutes(broke.reason)}` : place, short };
  }
  const boundary = boundaries[0];
  if (boundary) return { tone: "warn", text: inMinutes(boundary.reason), short };
  return { tone: "good", text: "prefix intact", short: "prefix intact" };
}

/** Converts recorded seconds in reasons to readable times. */
const inMinutes = (reason: string): string => reason.replace(/\b(\d{3,}) s\b/g, (_, count: string) => seconds(Number(count)));
