// The chat page: signs in, shows the store's lines, sends what is typed. chat.js shows, wire.js and
// stream.js speak with the gateway, state.js tells how it is.

import * as attach from "./attach.js";
import * as chat from "./chat.js";
import {headline, refresh, setConnected} from "./state.js";
import {Stream} from "./stream.js";
import {Outbox, call, uuid, whenSignedOut} from "./wire.js";

const $ = (id) => document.getElementById(id);
const text = $("text"), login = $("login");
const REFRESH_MS = 10000, AGAIN_MS = 3000;
let loading = true, early = [], sessions = 0;

const outbox = new Outbox((item, kind, words) => {
  chat.state(item.key, kind, words || "received");
  if (kind === "refused" && !text.value) { text.value = item.text; grow(); }
});
const stream = new Stream({
  line: (line) => { if (loading) early.push(line); else chat.stored(line); },
  live: (event) => { if (event.kind === "links") refresh(); else if (!loading) chat.live(event); },
  status: (open, fresh) => {
    setConnected(open);
    if (fresh) chat.forgetLive();
    if (open) { outbox.kick(); refresh(); }
  },
  position: chat.position,
  soFar: chat.soFar,
}, () => call("/api/health"));

async function begin() {
  const mine = ++sessions;
  loading = true;
  let recent;
  try {
    recent = await call("/api/recent");
  } catch (error) {
    if (error.status !== 401) { headline(error.message, "bad"); setTimeout(() => { if (mine === sessions) begin(); }, AGAIN_MS); }
    return;
  }
  if (mine !== sessions) return;
  chat.clear();
  recent.lines.forEach(chat.stored);
  loading = false;
  early.forEach(chat.stored);
  early = [];
  for (const item of outbox.restore()) {
    if (chat.knows(item.key)) outbox.done(item.key);
    else chat.insert(chat.person(item.key, spoken(item), "not sent yet"));
  }
  $("empty").hidden = !chat.isEmpty();
  chat.toEnd();
  stream.start();
  refresh();
  outbox.kick();
  if (matchMedia("(pointer: fine)").matches) text.focus();   // on a phone this would open the keyboard
}

// ---- saying something ----

const spoken = (item) => [item.text, ...attach.names(item.files || [])].filter(Boolean).join("\n");
attach.whenRefused((words) => chat.note(words, "failed"));
async function send(words) {
  const files = attach.isEmpty() ? [] : await attach.take();
  if (!words.trim() && !files.length) return;
  const item = outbox.push(words, files);
  chat.insert(chat.person(item.key, spoken(item), "sending …"));
  chat.toEnd();
  outbox.kick();
}
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = text.value;
  text.value = "";
  grow();
  send(words);
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});
const grow = () => { text.style.height = "auto"; text.style.height = `${text.scrollHeight + 2}px`; };
text.addEventListener("input", grow);
for (const button of document.querySelectorAll("[data-say]")) {
  button.addEventListener("click", () => send(button.dataset.say));
}
$("stop").addEventListener("click", () => {
  call("/api/stop", {key: uuid()}).catch((error) => chat.note(`not stopped: ${error.message}`, "failed"));
});
chat.whenRunning((running) => { $("stop").hidden = !running; if (!running) refresh(); });

// ---- the panel on a narrow screen ----

function panel(open) {
  $("panel").classList.toggle("open", open);
  $("panel-button").setAttribute("aria-expanded", String(open));
  $("panel-button").textContent = open ? "Close" : "State";
}
$("panel-button").addEventListener("click", () => panel(!$("panel").classList.contains("open")));
document.addEventListener("keydown", (event) => { if (event.key === "Escape") panel(false); });

// ---- signing in ----

whenSignedOut(() => {
  stream.stop();
  headline("signed out", "warn");
  if (!login.open) login.showModal();
});
login.addEventListener("cancel", (event) => event.preventDefault());
login.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn($("token").value.trim().replace(/^.*#token=/, ""));
});
async function signIn(token) {
  try {
    await call("/api/login", {token});
  } catch (error) {
    $("login-error").textContent = error.message;
    if (!login.open) login.showModal();
    return;
  }
  $("token").value = $("login-error").textContent = "";
  login.close();
  signedIn.postMessage("");
  begin();
}
const signedIn = "BroadcastChannel" in window ? new BroadcastChannel("hermes.signed-in") : {postMessage() {}};
signedIn.onmessage = () => { if (login.open) { login.close(); begin(); } };
addEventListener("pageshow", (event) => { if (event.persisted) begin(); });
addEventListener("hashchange", fromAddress);
setInterval(() => { if (!document.hidden && !login.open) refresh(); }, REFRESH_MS);

// The token stands in the address's fragment, which no server sees; it is taken out at once.
function fromAddress() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return false;
  history.replaceState(null, "", location.pathname);
  signIn(token);
  return true;
}
if (!fromAddress()) begin();
