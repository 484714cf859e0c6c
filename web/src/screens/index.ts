/** One row per screen. A screen receives `params` (named by its pattern) as its only prop, and is loaded when it
 * is first shown. */

import type { Component } from "svelte";
import { href, type Params } from "../lib/router.svelte";

export interface ScreenProps {
  params: Params;
}

export interface Screen {
  id: string;
  patterns: readonly string[];
  title: string;
  load: () => Promise<{ default: Component<ScreenProps> | Component<Record<string, never>> }>;
  /** The shortcut, or sequence of keys, that opens it (see lib/keys). */
  key?: string;
  /** The shell's menu that lists it: of the app, of a workspace, or of a session. */
  menu?: "app" | "workspace" | "session";
  /** The address of its menu entry, from the current parameters. */
  to?: (params: Params) => string;
}

const session = "w/:workspace/s/:session";

export const screens: readonly Screen[] = [
  { id: "start", patterns: [""], title: "Start", load: () => import("./start/Start.svelte") },
  {
    id: "chat",
    patterns: ["w/:workspace", session],
    title: "Chat",
    load: () => import("./chat/Chat.svelte"),
    key: "g s",
  },
  {
    id: "context",
    patterns: [`${session}/context/:request`],
    title: "Request context",
    load: () => import("./context/Context.svelte"),
  },
  {
    id: "layers",
    patterns: [`${session}/layers/:request`],
    title: "Layers",
    load: () => import("./layers/Layers.svelte"),
  },
  {
    id: "difference",
    patterns: [`${session}/difference/:before/:after`],
    title: "Difference",
    load: () => import("./difference/Difference.svelte"),
  },
  {
    id: "tree",
    patterns: [`${session}/tree`],
    title: "Tree",
    load: () => import("./tree/Tree.svelte"),
    key: "g t",
    menu: "session",
    to: (p) => href("w", p.workspace ?? "", "s", p.session ?? "", "tree"),
  },
  {
    id: "timeline",
    patterns: [`${session}/timeline`],
    title: "Timeline",
    load: () => import("./timeline/Timeline.svelte"),
    key: "g c",
    menu: "session",
    to: (p) => href("w", p.workspace ?? "", "s", p.session ?? "", "timeline"),
  },
  {
    id: "session-doctor",
    patterns: [`${session}/doctor`],
    title: "Doctor",
    load: () => import("./doctor/Doctor.svelte"),
    menu: "session",
    to: (p) => href("w", p.workspace ?? "", "s", p.session ?? "", "doctor"),
  },
  {
    id: "agents",
    patterns: ["w/:workspace/agents", "w/:workspace/agents/:agent", "w/:workspace/agents/:agent/:tab"],
    title: "Agents",
    load: () => import("./agents/Agents.svelte"),
    key: "g a",
    menu: "workspace",
    to: (p) => href("w", p.workspace ?? "", "agents"),
  },
  {
    id: "notes",
    patterns: ["w/:workspace/notes"],
    title: "Notes",
    load: () => import("./notes/Notes.svelte"),
    key: "g n",
    menu: "workspace",
    to: (p) => href("w", p.workspace ?? "", "notes"),
  },
  {
    id: "doctor",
    patterns: ["doctor"],
    title: "Doctor",
    load: () => import("./doctor/Doctor.svelte"),
    key: "g d",
    menu: "app",
    to: () => href("doctor"),
  },
  {
    id: "spending",
    patterns: ["spending"],
    title: "Spending",
    load: () => import("./spending/Spending.svelte"),
    key: "g $",
    menu: "app",
    to: () => href("spending"),
  },
  {
    id: "models",
    patterns: ["models"],
    title: "Models",
    load: () => import("./models/Models.svelte"),
    key: "g m",
    menu: "app",
    to: () => href("models"),
  },
  {
    id: "settings",
    patterns: ["settings", "settings/:tab"],
    title: "Settings",
    load: () => import("./settings/Settings.svelte"),
    key: "g ,",
    menu: "app",
    to: () => href("settings"),
  },
];
