/** The workspace and the session that were looked at last: what screens outside of them (settings,
 * models, the palette) are about. Kept over a reload. */

import { segments } from "./router.svelte";

const STORED = "lamina.visited";

export interface Place {
  workspace: string;
  session: string;
}

/** What a hash names; another workspace has another session, none until one is opened. */
export function placeOf(hash: string, before: Place): Place {
  const [first, workspace, kind, session] = segments(hash);
  if (first !== "w" || !workspace) return before;
  if (kind === "s" && session) return { workspace, session };
  return workspace === before.workspace ? before : { workspace, session: "" };
}

class Visited {
  #place = $state.raw<Place>(stored());

  constructor() {
    if (typeof window === "undefined") return;
    this.#see();
    window.addEventListener("hashchange", () => this.#see());
  }

  get workspace(): string {
    return this.#place.workspace;
  }

  get session(): string {
    return this.#place.session;
  }

  /** The session is gone: it was deleted, or is not there any more. */
  forget(session: string): void {
    if (this.#place.session === session) this.#keep({ workspace: this.#place.workspace, session: "" });
  }

  #see(): void {
    const place = placeOf(location.hash, this.#place);
    if (place !== this.#place) this.#keep(place);
  }

  #keep(place: Place): void {
    this.#place = place;
    try {
      localStorage.setItem(STORED, JSON.stringify(place));
    } catch {
      // A browser that keeps nothing: known until the page is left.
    }
  }
}

function stored(): Place {
  const nothing = { workspace: "", session: "" };
  try {
    return { ...nothing, ...(JSON.parse(localStorage.getItem(STORED) ?? "{}") as Partial<Place>) };
  } catch {
    return nothing;
  }
}

export const visited = new Visited();
