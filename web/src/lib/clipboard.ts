import { status } from "./status.svelte";

/** Copies text and shows a notice. */
export async function copy(text: string, what = "Copied."): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    status.toast(what);
  } catch {
    status.toast("The browser blocked copying. Select the text and copy it manually.", { tone: "bad" });
  }
}
