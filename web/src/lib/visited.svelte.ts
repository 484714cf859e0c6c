/** The workspace and the session shown last: what screens outside of them (settings, models, the palette) refer
 * to. Survives a reload. */

import { segments } from "./router.svelte";

const STORED = "lamina.visited";

export interface Place {
  workspace: string;
  session: string;
}

/** The workspace and session in a hash; a new workspace has no session until one is opened. */
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

  /** The session was deleted or no longer exists. */
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
      // Without browser storage it lasts until the page is closed.
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
