// What stands in the chat: stored lines, and the live pieces of the turn that runs.

const $ = (id) => document.getElementById(id);
const list = $("lines"), pane = $("chat"), below = $("newest"), announce = $("announce");
const byKey = new Map();          // a person's line by its UUID: a repeated post is shown once
let seq = 0, inbox = 0;           // what is known of the store: "<outbox seq>.<inbox id>"
let draft = null, shown = "", running = false, fading = 0;
let onRunning = () => {};

export const whenRunning = (react) => { onRunning = react; };
export const isEmpty = () => list.childElementCount === 0;
export const position = () => (seq || inbox ? `${seq}.${inbox}` : "");

// ---- scrolling: new things are followed only by someone who looks at the end ----

const atEnd = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight < 60;
export function toEnd() { pane.scrollTop = pane.scrollHeight; below.hidden = true; }
function following(change) {
  const follow = atEnd();
  const result = change();
  if (follow) toEnd(); else below.hidden = false;
  return result;
}
pane.addEventListener("scroll", () => { if (atEnd()) below.hidden = true; }, {passive: true});
below.addEventListener("click", toEnd);

// ---- stored lines ----

export function clear() {
  list.replaceChildren();
  byKey.clear();
  seq = inbox = 0;
  forgetLive();
}
export function stored(line) {
  const [s, i] = line.position.split(".").map(Number);
  if (s <= seq && i <= inbox) return;
  seq = Math.max(seq, s); inbox = Math.max(inbox, i);
  if (line.speaker === "person") {
    const mine = byKey.get(line.key);
    if (mine) { state(line.key, "stored", when(line.at)); return; }
    insert(person(line.key, line.text, when(line.at)));
    return;
  }
  following(() => {
    dropDraft();
    const item = bubble("agent", "Hermes", when(line.at));
    item.querySelector(".body").append(...safe(line.html));
    insert(item);
  });
  say(line.text);
}
export function person(key, text, words) {
  const item = bubble("person", "You", words);
  item.querySelector(".body").textContent = text;
  byKey.set(key, item);
  return item;
}
export function insert(item) {
  following(() => { if (draft) list.insertBefore(item, draft); else list.append(item); });
  $("empty").hidden = true;
  return item;
}
export const knows = (key) => byKey.has(key);
export function state(key, kind, words) {
  const item = byKey.get(key);
  if (!item || (kind !== "stored" && item.classList.contains("stored"))) return;
  item.classList.remove("sending", "waiting", "received", "refused");
  item.classList.add(kind);
  item.querySelector(".when").textContent = words;
}
function bubble(kind, who, words) {
  const item = document.createElement("li"), name = document.createElement("span");
  const body = document.createElement("div"), time = document.createElement("span");
  item.className = `said ${kind}`;
  name.className = "hidden";
  name.textContent = `${who}: `;
  body.className = "body";
  time.className = "when";
  time.textContent = words;
  item.append(name, body, time);
  return item;
}
function when(at) {
  const day = new Date(at * 1000), today = new Date().toDateString() === day.toDateString();
  const time = {hour: "2-digit", minute: "2-digit"};
  return today ? day.toLocaleTimeString([], time) : day.toLocaleString([], {...time, day: "numeric", month: "short"});
}
// The gateway made this HTML from Markdown with raw HTML switched off; the page's policy allows no inline script.
function safe(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;
  for (const block of holder.content.querySelectorAll("pre")) copyable(block);
  return holder.content.childNodes;
}
function copyable(block) {
  block.tabIndex = 0;             // so that a wide block can be scrolled by keyboard
  if (!navigator.clipboard) return;
  const frame = document.createElement("div"), button = document.createElement("button");
  frame.className = "code";
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(block.textContent); button.textContent = "Copied"; }
    catch { button.textContent = "Not allowed"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.replaceWith(frame);
  frame.append(block, button);
}
// A screen reader hears whole answers and notices, not each word of a draft.
function say(words) { announce.textContent = words.length > 600 ? `${words.slice(0, 600)} …` : words; }

// ---- live pieces ----

export function live(event) {
  switch (event.kind) {
    case "turn_started": setRunning(true); needDraft(); break;
    case "text": setRunning(true); piece(event.text); break;
    case "restarted": if (draft) { shown = ""; pending(); } break;
    case "notice": note(event.text, event.detail); break;
    case "tool":
      if (event.detail !== "start") break;
      if (shown) piece("\n\n");                  // what it says next is not the same sentence
      note(`uses ${event.text}`, "tool");
      break;
    case "turn_ended":
      setRunning(false);
      clearTimeout(fading);
      fading = setTimeout(dropDraft, 1500);     // the stored line comes first and takes its place
      break;
  }
}
export function soFar() {
  if (!running) return [];
  return [{kind: "turn_started"}, ...(shown ? [{kind: "text", text: shown}] : [])];
}
export function forgetLive() { setRunning(false); dropDraft(); }
function setRunning(now) {
  if (now) clearTimeout(fading);
  if (running !== now) { running = now; onRunning(now); }
}
function needDraft() {
  if (draft) return;
  draft = bubble("agent", "Hermes", "");
  draft.classList.add("live");
  draft.setAttribute("aria-hidden", "true");
  shown = "";
  pending();
  following(() => list.append(draft));
  $("empty").hidden = true;
}
function pending() {
  const dots = document.createElement("span");
  dots.className = "dots";
  dots.append(...[1, 2, 3].map(() => document.createElement("i")));
  draft.querySelector(".body").replaceChildren(dots);
}
function piece(words) {
  needDraft();
  following(() => {
    const body = draft.querySelector(".body");
    if (!shown) body.replaceChildren();
    body.append(words);
    shown += words;
  });
}
function dropDraft() {
  clearTimeout(fading);
  if (draft) draft.remove();
  draft = null;
  shown = "";
}
export function note(words, kind) {
  const item = document.createElement("li");
  item.className = `notice ${kind || ""}`;
  item.textContent = words;
  insert(item);
  say(words);
  const seconds = kind === "retry" && /\bin (\d+) s\b/.exec(words);
  if (seconds) countDown(item, words, seconds[0], Date.now() + Number(seconds[1]) * 1000);
}
function countDown(item, words, phrase, end) {
  const timer = setInterval(() => {
    const left = Math.round((end - Date.now()) / 1000);
    item.textContent = left > 0 ? words.replace(phrase, `in ${left} s`) : words.replace(`trying again ${phrase}`, "tried again");
    if (left <= 0) clearInterval(timer);
  }, 1000);
}
