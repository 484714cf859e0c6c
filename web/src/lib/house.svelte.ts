/** The data of the shell: the user, the workspaces, and the live list of sessions in the current one. */

import { api, ofSession, ofWorkspace, path, watch } from "./api";
import type { EventStream, StreamState } from "./sse";
import { status } from "./status.svelte";
import type { Shapes } from "./types";

export type SessionCard = Shapes["SessionCard"];
export type SessionState = SessionCard["state"];
type Workspace = Shapes["WorkspaceRow"];

/** The word and the icon for each state. */
export const STATES = {
  idle: { word: "", icon: null },
  working: { word: "works", icon: "works" },
  waiting: { word: "waiting for you", icon: "waits" },
  interrupted: { word: "interrupted", icon: "broken" },
  unreadable: { word: "unreadable", icon: "warning" },
} as const;

const PAGE = 100;
const RECENT = "lamina.workspace";

class House {
  me = $state.raw<Shapes["Me"] | undefined>();
  workspaces = $state.raw<readonly Workspace[] | undefined>();
  workspace = $state("");
  sessions = $state.raw<readonly SessionCard[] | undefined>();
  total = $state(0);
  filter = $state("");
  error = $state.raw<unknown>();
  /** Changes made by other tabs and turns, so that screens can refresh. */
  news = $state.raw<Shapes["SessionNews"] | undefined>();
  /** The server is not responding; reconnecting continues. */
  away = $state(false);
  /** Counts reconnections, so that failed requests are repeated. */
  returns = $state(0);
  #leaving: ReturnType<typeof setTimeout> | undefined;
  #after: string | null = null;
  #stream: EventStream | null = null;
  #again: ReturnType<typeof setTimeout> | undefined;
  #turn = 0;

  current = $derived(this.workspaces?.find((row) => row.id === this.workspace));

  async begin(): Promise<void> {
    try {
      const [me, rows] = await Promise.all([
        api.get<Shapes["Me"]>(path("me")),
        api.get<Shapes["WorkspaceRows"]>(path("workspaces")),
      ]);
      this.me = me;
      this.workspaces = rows.workspaces;
      this.error = undefined;
    } catch (error) {
      this.error = error;
    }
  }

  /** The workspace used last, if it still exists. */
  recent(): Workspace | undefined {
    const there = (this.workspaces ?? []).filter((row) => row.is_there);
    let wanted = this.me?.workspace || "";
    try {
      wanted ||= localStorage.getItem(RECENT) ?? "";
    } catch {
      // Without browser storage, use the first of the list.
    }
    return there.find((row) => row.id === wanted || row.path === wanted) ?? there[0];
  }

  async refreshWorkspaces(): Promise<void> {
    this.workspaces = (await api.get<Shapes["WorkspaceRows"]>(path("workspaces"))).workspaces;
  }

  async open(folder: string, create = false): Promise<Workspace> {
    const row = await api.post<Workspace>(path("workspaces"), { path: folder, create });
    await this.refreshWorkspaces();
    return row;
  }

  async forget(id: string): Promise<void> {
    await api.delete(ofWorkspace(id));
    await this.refreshWorkspaces();
  }

  /** Opens a workspace: loads its sessions and watches their changes. */
  enter(workspace: string): void {
    if (workspace === this.workspace) return;
    this.workspace = workspace;
    this.sessions = undefined;
    this.filter = "";
    this.#stream?.close();
    this.#stream = null;
    if (!workspace) return;
    try {
      localStorage.setItem(RECENT, workspace);
    } catch {
      // The choice lasts until the page is closed.
    }
    void this.refresh();
    this.#stream = watch<Shapes["SessionNews"]>(ofWorkspace(workspace, "events"), {
      onevent: (news) => {
        this.news = news;
        this.#mark(news);
      },
      onstate: (state) => this.#hear(state),
    });
  }

  #hear(state: StreamState): void {
    // Do not report a connection that is restored within a second.
    if (state === "waiting") this.#leaving ??= setTimeout(() => this.#leave(), 1000);
    else {
      clearTimeout(this.#leaving);
      this.#leaving = undefined;
      if (this.away && state === "open") {
        this.returns++;
        status.say("the server is responding again");
        void this.refresh();
      }
      this.away = false;
    }
  }

  #leave(): void {
    this.away = true;
    status.say("the server is not responding");
  }

  #mark(news: Shapes["SessionNews"]): void {
    const known = this.sessions?.find((card) => card.session === news.session);
    if (known && (known.state !== news.state || known.turn !== news.turn)) {
      this.sessions = this.sessions?.map((card) =>
        card.session === news.session ? { ...card, state: news.state, turn: news.turn } : card,
      );
    }
    // Costs and titles are known when the turn has ended; many changes make one call.
    if (!known || news.state !== "working") this.soon();
  }

  soon(): void {
    clearTimeout(this.#again);
    this.#again = setTimeout(() => void this.refresh(), 400);
  }

  async refresh(): Promise<void> {
    const turn = ++this.#turn;
    const workspace = this.workspace;
    if (!workspace) return;
    try {
      const page = await api.get<Shapes["SessionPage"]>(ofWorkspace(workspace, "sessions"), {
        q: this.filter,
        limit: Math.max(PAGE, Math.min(1000, this.sessions?.length ?? 0)),
      });
      if (turn !== this.#turn || workspace !== this.workspace) return;
      this.sessions = page.sessions;
      this.total = page.total;
      this.#after = page.after;
      this.error = undefined;
    } catch (error) {
      if (turn === this.#turn) this.error = error;
    }
  }

  get hasMore(): boolean {
    return (this.sessions?.length ?? 0) < this.total;
  }

  async more(): Promise<void> {
    if (!this.#after) return;
    const page = await api.get<Shapes["SessionPage"]>(ofWorkspace(this.workspace, "sessions"), {
      q: this.filter,
      limit: PAGE,
      after: this.#after,
    });
    this.sessions = [...(this.sessions ?? []), ...page.sessions];
    this.#after = page.after;
  }

  async rename(session: string, name: string): Promise<void> {
    await api.patch(ofSession(this.workspace, session), { name });
    await this.refresh();
  }

  async remove(session: string): Promise<Shapes["DeletedRow"]> {
    const gone = await api.delete<Shapes["DeletedRow"]>(ofSession(this.workspace, session));
    await this.refresh();
    return gone;
  }

  async import(file: File): Promise<Shapes["ImportedRow"]> {
    const body = await fileBody(file);
    const row = await api.post<Shapes["ImportedRow"]>(ofWorkspace(this.workspace, "import"), body);
    await this.refresh();
    return row;
  }
}

/** A file as the API accepts it: text if it is UTF-8, else base64. */
export async function fileBody(file: File): Promise<{ name: string; content: string; encoding: "text" | "base64" }> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return { name: file.name, content: new TextDecoder("utf-8", { fatal: true }).decode(bytes), encoding: "text" };
  } catch {
    let binary = "";
    for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    return { name: file.name, content: btoa(binary), encoding: "base64" };
  }
}

export const house = new House();
