/** Every shortcut of the app is registered here, with the label shown in the sheet at `?` and the palette. None
 * fires while a person types, except those with a modifier that allow it. */

import { untrack } from "svelte";

export interface Key {
  /** `c`, `?`, `Escape`, `Mod+k`, `Mod+Enter`, or a sequence `g s`. */
  keys: string;
  /** What it does: `Open the request context`. */
  label: string;
  /** The heading it is listed under. */
  group: string;
  run: (event?: KeyboardEvent) => void;
  /** Fires even while a text field has the focus. */
  typing?: boolean;
  /** Whether it applies now; if not, others with the same key may. */
  when?: () => boolean;
  /** Hidden from the palette or from the sheet. */
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

/** The name of a pressed key, spelled as in `keys`. */
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

  /** Registers shortcuts and returns a function that removes them: `$effect(() => keys.add([...]))`. */
  add(added: readonly Key[]): () => void {
    // Registering in an effect must not depend on other registrations.
    this.all = [...untrack(() => this.all), ...added];
    return () => {
      this.all = untrack(() => this.all).filter((key) => !added.includes(key));
    };
  }

  handle(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.isComposing || ["Shift", "Control", "Alt", "Meta"].includes(event.key)) return;
    // A dialog or an open menu handles its own keys, especially Escape.
    if (event.key === "Escape" && event.target instanceof HTMLElement && event.target.closest("dialog, [role=menu]")) return;
    const typing = isTyping(event.target);
    const pressed = [...this.#pending, nameOf(event)].join(" ");
    // The latest registration comes first: a screen may override a key of the shell.
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

/** `Mod+k` as key caps: `["⌘", "K"]`; a sequence gives one list per step. */
export function caps(keys: string): string[][] {
  return keys.split(" ").map((step) =>
    (step === "+" ? ["+"] : step.split("+")).map((part) => SYMBOLS[part] ?? (step.includes("+") && part.length === 1 ? part.toUpperCase() : part)),
  );
}
