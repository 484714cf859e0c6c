import { mount } from "svelte";
import "./ui/tokens.css";
import "./ui/base.css";
import "./ui/fills.css";
import App from "./App.svelte";
import { density } from "./lib/density.svelte";
import { theme } from "./lib/theme.svelte";

theme.apply();
density.apply();
const target = document.getElementById("app");
if (!target) throw new Error("index.html has no #app");
mount(App, { target });
