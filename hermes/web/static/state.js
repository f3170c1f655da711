// The state panel and the sentence in the head: what works, what does not, and the cure.

import {call} from "./wire.js";

const $ = (id) => document.getElementById(id);
const WORDS = {ok: "works", warn: "attention", bad: "does not work", unchecked: "not checked"};
const GROUPS = [["model ", "models"], ["platform ", "platforms"], ["", "gateway"]];
const NONE = "add one in config.yaml, for example under platforms.telegram its token and allowed_users";
let connected = true;

export function setConnected(now) {
  connected = now;
  document.body.classList.toggle("lost", !now);
  if (!now) headline("connection lost, trying again", "warn");
}
export function headline(words, kind) {
  const place = $("summary");
  if (place.textContent !== words) place.textContent = words;   // said again by a screen reader only when it is new
  place.title = words;
  place.className = kind;
}
export async function refresh() {
  let health;
  try {
    health = await call("/api/health");
  } catch (error) {
    if (error.status !== 401) headline(`${error.message}, trying again`, "bad");
    return;
  }
  const groups = {models: [], platforms: [], gateway: []};
  for (const entry of health.items) {
    const [prefix, group] = GROUPS.find(([start]) => entry.name.startsWith(start));
    groups[group].push(line(entry.name.slice(prefix.length), entry.light, entry.sentence));
  }
  if (!groups.platforms.length) groups.platforms.push(line("chat platforms", "unchecked", NONE, "none yet"));
  groups.platforms.unshift(line("this page", "ok", "connected"));
  for (const [name, items] of Object.entries(groups)) $(name).replaceChildren(...items);
  $("home").textContent = `Hermes ${health.version} · ${health.home}`;
  const rehearses = health.items.some((entry) => entry.figures.reason === "rehearsal");
  $("no-model").hidden = !rehearses;
  $("with-model").hidden = rehearses;
  sum(health, rehearses);
}
function sum(health, rehearses) {
  if (!connected) return;
  const bad = health.items.find((entry) => entry.light === "bad");
  const warn = health.items.find((entry) => entry.light === "warn" && entry.figures.reason !== "rehearsal");
  const worst = bad || warn;
  if (worst) headline(`${worst.name}: ${worst.sentence}`, worst.light);
  else if (!health.ready) headline(health.not_ready.join("; "), "warn");
  else if (rehearses) headline("ready, but no model: the rehearsal answers", "warn");
  else headline("ready", "ok");
}
function line(name, light, sentence, state = WORDS[light]) {
  const item = document.createElement("li"), head = document.createElement("b"), mark = document.createElement("i");
  const word = document.createElement("em"), words = document.createElement("span");
  mark.className = `light ${light}`;
  word.textContent = state;
  head.append(mark, name, word);
  words.textContent = sentence;
  item.className = light;
  item.append(head, words);
  return item;
}
