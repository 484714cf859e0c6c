/** Attachments that other screens add to a session's message; they wait here for the chat. */

const keyOf = (workspace: string, session: string): string => `${workspace}\n${session}`;

class Composer {
  #waiting = $state.raw<Readonly<Record<string, readonly string[]>>>({});

  /** Attaches a file or a place in one, as written after an `@`, to the next message of a session (empty: of a
   * new session). Returns whether it was not attached yet. */
  attach(workspace: string, session: string, what: string): boolean {
    const key = keyOf(workspace, session);
    const before = this.#waiting[key] ?? [];
    if (before.includes(what)) return false;
    this.#waiting = { ...this.#waiting, [key]: [...before, what] };
    return true;
  }

  /** The attachments waiting for this session; the chat shows them and calls `take`. */
  waiting(workspace: string, session: string): readonly string[] {
    return this.#waiting[keyOf(workspace, session)] ?? [];
  }

  /** Hands the waiting attachments over to the chat. */
  take(workspace: string, session: string): readonly string[] {
    const key = keyOf(workspace, session);
    const taken = this.#waiting[key] ?? [];
    if (taken.length) this.#waiting = Object.fromEntries(Object.entries(this.#waiting).filter(([name]) => name !== key));
    return taken;
  }
}

export const composer = new Composer();
