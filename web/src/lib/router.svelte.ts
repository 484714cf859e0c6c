/** The place in the app is the hash of the address, and nothing else: other state is lost on reload. Segments
 * are percent-encoded, so that any name of a session or a file fits. */

export type Params = Record<string, string>;

export interface Match<T> {
  row: T;
  params: Params;
}

interface Patterned {
  /** `w/:workspace/s/:session`; a last segment `*rest` matches everything after it. */
  patterns: readonly string[];
}

/** The segments of a hash such as `#/w/notes/s/harbour?row=7`. */
export function segments(hash: string): string[] {
  const path = hash.replace(/^#\/?/, "").split("?")[0] ?? "";
  return path.split("/").filter(Boolean).map(decode);
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function fit(pattern: string, path: readonly string[]): Params | null {
  const wanted = pattern.split("/").filter(Boolean);
  const params: Params = {};
  for (const [place, name] of wanted.entries()) {
    if (name.startsWith("*")) {
      params[name.slice(1)] = path.slice(place).join("/");
      return params;
    }
    const segment = path[place];
    if (segment === undefined) return null;
    if (name.startsWith(":")) params[name.slice(1)] = segment;
    else if (name !== segment) return null;
  }
  return wanted.length === path.length ? params : null;
}

/** The first row with a matching pattern. */
export function match<T extends Patterned>(rows: readonly T[], path: readonly string[]): Match<T> | null {
  for (const row of rows) {
    for (const pattern of row.patterns) {
      const params = fit(pattern, path);
      if (params) return { row, params };
    }
  }
  return null;
}

/** `href("w", "notes", "s", "a b")` is `#/w/notes/s/a%20b`; a last object is the query. */
export function href(...parts: (string | number | Record<string, string>)[]): string {
  const last = parts.at(-1);
  const query = typeof last === "object" ? new URLSearchParams(last).toString() : "";
  const path = parts.filter((part) => typeof part !== "object").map((part) => encodeURIComponent(String(part)));
  return `#/${path.join("/")}${query ? `?${query}` : ""}`;
}

class Router {
  hash = $state(typeof location === "undefined" ? "" : location.hash);
  path = $derived(segments(this.hash));
  query = $derived(new URLSearchParams(this.hash.split("?")[1] ?? ""));

  constructor() {
    if (typeof window === "undefined") return;
    window.addEventListener("hashchange", () => (this.hash = location.hash));
  }

  /** Goes to an address made by `href`; `replace` leaves no step back. */
  go(to: string, { replace = false } = {}): void {
    if (replace) {
      history.replaceState(null, "", to);
      this.hash = to;
    } else {
      location.hash = to;
    }
  }
}

export const router = new Router();
