import { status } from "./status.svelte";

/** Copies text and says so. */
export async function copy(text: string, what = "Copied."): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    status.toast(what);
  } catch {
    status.toast("The browser does not let this page copy. Select the text and copy it yourself.", { tone: "bad" });
  }
}
