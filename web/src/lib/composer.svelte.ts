/** What other screens put into the message box of a session: it waits here until the chat takes it. */

const keyOf = (workspace: string, session: string): string => `${workspace}\n${session}`;

class Composer {
  #waiting = $state.raw<Readonly<Record<string, readonly string[]>>>({});

  /** Attaches a file or a place in one, as it would stand behind an `@`, to the next message of a
   * session; an empty session is the one that is about to begin. Says whether it was not there yet. */
  attach(workspace: string, session: string, what: string): boolean {
    const key = keyOf(workspace, session);
    const before = this.#waiting[key] ?? [];
    if (before.includes(what)) return false;
    this.#waiting = { ...this.#waiting, [key]: [...before, what] };
    return true;
  }

  /** What waits for this session; the chat shows it and calls `take`. */
  waiting(workspace: string, session: string): readonly string[] {
    return this.#waiting[keyOf(workspace, session)] ?? [];
  }

  /** Hands over what waits: from now on it is the chat's. */
  take(workspace: string, session: string): readonly string[] {
    const key = keyOf(workspace, session);
    const taken = this.#waiting[key] ?? [];
    if (taken.length) this.#waiting = Object.fromEntries(Object.entries(this.#waiting).filter(([name]) => name !== key));
    return taken;
  }
}

export const composer = new Composer();
