/** Attaches notes to the message box of the session shown last. */

import { composer } from "../../lib/composer.svelte";
import { house } from "../../lib/house.svelte";
import { href, router } from "../../lib/router.svelte";
import { status } from "../../lib/status.svelte";
import { visited } from "../../lib/visited.svelte";

/** The name of the session that notes are attached to. */
export function nameOfSession(workspace: string): string {
  const session = sessionOf(workspace);
  if (!session) return "a new session";
  return house.sessions?.find((card) => card.session === session)?.name || "the session you had open";
}

function sessionOf(workspace: string): string {
  return visited.workspace === workspace ? visited.session : "";
}

export function attach(workspace: string, what: string): void {
  const session = sessionOf(workspace);
  const there = session ? href("w", workspace, "s", session) : href("w", workspace);
  const isNew = composer.attach(workspace, session, what);
  status.toast(isNew ? `${what} attached to ${nameOfSession(workspace)}.` : `${what} is already attached.`, {
    tone: "good",
    action: { label: "Write the message", run: () => router.go(there) },
  });
}
