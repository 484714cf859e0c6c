/** The message being written, per session; it survives a reload. */

interface Kept {
  text: string;
  attach: string[];
  essential: string[];
}

export class MessageDraft {
  text = $state("");
  attach = $state.raw<readonly string[]>([]);
  essential = $state.raw<readonly string[]>([]);
  target = $state("");
  readonly #key: string;

  constructor(workspace: string, session: string) {
    this.#key = `lamina.draft.${workspace}.${session}`;
    try {
      const kept = JSON.parse(localStorage.getItem(this.#key) ?? "null") as Kept | null;
      if (kept) [this.text, this.attach, this.essential] = [kept.text, kept.attach, kept.essential];
    } catch {
      // Nothing stored, or nothing readable.
    }
  }

  /** Stores it; call this after changes. */
  keep(): void {
    const { text, attach, essential } = this;
    try {
      if (text || attach.length || essential.length) localStorage.setItem(this.#key, JSON.stringify({ text, attach, essential }));
      else localStorage.removeItem(this.#key);
    } catch {
      // Without browser storage, the draft lasts as long as the page.
    }
  }

  essentialToggle(what: string): void {
    if (this.essential.includes(what)) this.essential = this.essential.filter((one) => one !== what);
    else {
      this.attach = this.attach.filter((one) => one !== what);
      this.essential = [...this.essential, what];
    }
  }
}
