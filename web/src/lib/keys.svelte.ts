/** Every key of the app is registered here, with the words that the sheet at `?` and the palette show.
 * None fires while somebody types, except those with a modifier that say so. */

import { untrack } from "svelte";

export interface Key {
  /** `c`, `?`, `Escape`, `Mod+k`, `Mod+Enter`, or a sequence `g s`. */
  keys: string;
  /** What it does, in words: `Open the request context`. */
  label: string;
  /** Under which heading it is listed. */
  group: string;
  run: (event?: KeyboardEvent) => void;
  /** Also while a text field has the focus. */
  typing?: boolean;
  /** Whether it makes sense now; if not, others with the same key get their turn. */
  when?: () => boolean;
  /** In the palette only, or in the sheet only. */
  hidden?: boolean;
}

export const isMac = typeof navigator !== "undefined" && /Mac|iPhone|iPad/.test(navigator.platform);

const PATIENCE = 1200;

export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.closest("[data-own-keys], dialog, [role=menu]")) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio", "button", "range"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** The name of a pressed key, as `keys` spells it. */
export function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 && event.key !== " " ? event.key : event.key === " " ? "Space" : event.key;
  const parts: string[] = [];
  if (isMac ? event.metaKey : event.ctrlKey) parts.push("Mod");
  if (event.altKey) parts.push("Alt");
  if (event.shiftKey && event.key.length > 1) parts.push("Shift");
  parts.push(parts.includes("Mod") ? key.toLowerCase().replace("enter", "Enter") : key);
  return parts.join("+");
}

class Keys {
  all = $state.raw<readonly Key[]>([]);
  #pending: string[] = [];
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Registers keys and returns what takes them away: `$effect(() => keys.add([...]))`. */
  add(added: readonly Key[]): () => void {
    // Whoever registers in an effect must not depend on what others register.
    this.all = [...untrack(() => this.all), ...added];
    return () => {
      this.all = untrack(() => this.all).filter((key) => !added.includes(key));
    };
  }

  handle(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    // A dialog or an open menu keeps its keys for itself, Escape above all.
    if (event.key === "Escape" && event.target instanceof HTMLElement && event.target.closest("dialog, [role=menu]")) return;
    const typing = isTyping(event.target);
    const pressed = [...this.#pending, nameOf(event)].join(" ");
    // The youngest goes first: a screen may take a key that the shell has, too.
    const possible = this.all.toReversed().filter((key) => (!typing || key.typing) && (key.when?.() ?? true));
    const hit = possible.find((key) => key.keys === pressed);
    clearTimeout(this.#timer);
    if (hit) {
      this.#pending = [];
      event.preventDefault();
      hit.run(event);
    } else if (possible.some((key) => key.keys.startsWith(`${pressed} `))) {
      this.#pending = pressed.split(" ");
      this.#timer = setTimeout(() => (this.#pending = []), PATIENCE);
    } else {
      const again = this.#pending.length > 0;
      this.#pending = [];
      if (again) this.handle(event);
    }
  }
}

export const keys = new Keys();

const SYMBOLS: Record<string, string> = {
  Mod: isMac ? "⌘" : "Ctrl",
  Alt: isMac ? "⌥" : "Alt",
  Shift: "⇧",
  Enter: "↵",
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
};

/** `Mod+k` as the caps to draw: `["⌘", "K"]`; a sequence gives one list per step. */
export function caps(keys: string): string[][] {
  return keys.split(" ").map((step) =>
    (step === "+" ? ["+"] : step.split("+")).map((part) => SYMBOLS[part] ?? (step.includes("+") && part.length === 1 ? part.toUpperCase() : part)),
  );
}
