// The chat page: stored lines come by position, live pieces beside them; nothing typed is lost on the way.

const $ = (id) => document.getElementById(id);
const lines = $("lines"), chat = $("chat"), text = $("text"), stop = $("stop"), summary = $("summary");
const byKey = new Map();      // a person's line by its UUID, so that a repeated post is shown once
const RETRY_FIRST = 1000, RETRY_CAP = 15000, HEALTH_EVERY = 10000;
let source = null, draft = null, running = 0, known = "";

function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 15) | 64; b[8] = (b[8] & 63) | 128;
  const h = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
}

async function call(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
  };
  const response = await fetch(path, options);
  if (response.status === 401 && path !== "/api/login") askForToken();
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw Object.assign(new Error(answer.error || `HTTP ${response.status}`), {status: response.status});
  return answer;
}

// ---- lines ----

const atEnd = () => chat.scrollHeight - chat.scrollTop - chat.clientHeight < 80;
function add(element) {
  const follow = atEnd();
  lines.append(element);
  if (draft && draft !== element && element.classList.contains("agent")) lines.append(draft);
  $("empty").hidden = true;
  if (follow) chat.scrollTop = chat.scrollHeight;
  return element;
}
function bubble(kind, content, when) {
  const item = document.createElement("li");
  item.className = `said ${kind}`;
  if (kind === "person") item.append(content); else item.append(...content);
  const time = document.createElement("time");
  time.className = "when";
  time.textContent = when;
  item.append(time);
  return item;
}
const clock = (at) => new Date(at * 1000).toLocaleTimeString([], {hour: "2-digit", minute: "2-digit"});
function nodes(html) {
  const holder = document.createElement("template");
  holder.innerHTML = html;     // sanitised by the gateway; the page's policy allows no inline script anyway
  for (const link of holder.content.querySelectorAll("a")) { link.target = "_blank"; link.rel = "noopener noreferrer"; }
  return holder.content.childNodes;
}
function show(line) {
  known = line.position;
  if (line.speaker === "person") {
    const mine = byKey.get(line.key);
    if (mine) { mark(mine, clock(line.at), false); return; }
    byKey.set(line.key, add(bubble("person", line.text, clock(line.at))));
    return;
  }
  endDraft();
  add(bubble("agent", nodes(line.html), clock(line.at)));
}
function mark(item, words, failed) {
  item.querySelector(".when").textContent = words;
  item.classList.toggle("failed", failed);
}

// ---- live pieces ----

function live(event) {
  switch (event.kind) {
    case "turn_started": running += 1; break;
    case "turn_ended": running = Math.max(0, running - 1); if (!running) endDraft(); break;
    case "text": piece(event.text); break;
    case "restarted": endDraft(); break;
    case "notice": note(event.text); break;
    case "tool": if (event.detail === "start") note(`using ${event.text}`); break;
    case "links": refreshHealth(); break;
  }
  stop.hidden = running === 0;
}
function piece(words) {
  const follow = atEnd();
  if (!draft) {
    draft = document.createElement("li");
    draft.className = "said agent live";
    lines.append(draft);
  }
  draft.append(words);
  if (follow) chat.scrollTop = chat.scrollHeight;
}
function endDraft() { if (draft) { draft.remove(); draft = null; } }
function note(words) {
  const item = document.createElement("li");
  item.className = "notice";
  item.textContent = words;
  add(item);
}

// ---- saying something ----

async function say(words) {
  const key = uuid();
  const item = add(bubble("person", words, "sending …"));
  byKey.set(key, item);
  chat.scrollTop = chat.scrollHeight;
  for (let wait = RETRY_FIRST; ; wait = Math.min(wait * 2, RETRY_CAP)) {
    try {
      await call("/api/say", {key, text: words});
      if (item.querySelector(".when").textContent.startsWith("s")) mark(item, "received", false);
      return;
    } catch (error) {
      if (error.status && error.status < 500 && error.status !== 401) { mark(item, error.message, true); return; }
      mark(item, `not sent yet (${error.message}); trying again`, true);
      await new Promise((done) => setTimeout(done, wait));
    }
  }
}
$("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  const words = text.value;
  if (!words.trim()) return;
  text.value = "";
  grow();
  say(words);
});
text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});
const grow = () => { text.style.height = "auto"; text.style.height = `${text.scrollHeight + 2}px`; };
text.addEventListener("input", grow);
stop.addEventListener("click", () => call("/api/stop", {key: uuid()}).catch((error) => note(error.message)));

// ---- state ----

$("panel-button").addEventListener("click", () => {
  const open = $("panel").classList.toggle("open");
  $("panel-button").setAttribute("aria-expanded", open);
});
const SYMBOL = {ok: "working", warn: "attention", bad: "not working", unchecked: "not checked"};
async function refreshHealth() {
  let health;
  try { health = await call("/api/health"); } catch (error) {
    if (error.status !== 401) say_state(`the gateway does not answer (${error.message})`, "bad");
    return;
  }
  const items = health.items.map((entry) => {
    const item = document.createElement("li"), head = document.createElement("b"), words = document.createElement("span");
    const light = document.createElement("i");
    light.className = `light ${entry.light}`;
    light.title = SYMBOL[entry.light];
    light.setAttribute("aria-label", SYMBOL[entry.light]);
    head.append(light, entry.name);
    words.textContent = entry.sentence;
    item.append(head, words);
    return item;
  });
  $("health").replaceChildren(...items);
  $("home").textContent = `Hermes ${health.version} · ${health.home}`;
  const worst = health.items.find((entry) => entry.light === "bad") || health.items.find((entry) => entry.light === "warn");
  if (worst) say_state(`${worst.name}: ${worst.sentence}`, worst.light);
  else say_state(health.ready ? "ready" : health.not_ready.join("; "), health.ready ? "" : "warn");
}
function say_state(words, kind) {
  summary.textContent = words;
  summary.title = words;
  summary.className = kind;
}

// ---- session ----

function askForToken() {
  if (source) { source.close(); source = null; }
  if (!$("login").open) $("login").showModal();
}
$("login").addEventListener("cancel", (event) => event.preventDefault());
$("login").querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await call("/api/login", {token: $("token").value.trim()});
    $("login").close();
    begin();
  } catch (error) { $("login-error").textContent = error.message; }
});
function listen() {
  if (source) source.close();
  source = new EventSource(`/api/events?after=${encodeURIComponent(known)}`);
  source.addEventListener("line", (event) => show(JSON.parse(event.data)));
  source.addEventListener("live", (event) => live(JSON.parse(event.data)));
  source.addEventListener("open", () => { running = 0; stop.hidden = true; endDraft(); refreshHealth(); });
  source.addEventListener("error", () => {
    say_state("connection lost, trying again", "warn");
    if (source && source.readyState === EventSource.CLOSED) {   // refused, not cut: the browser gave up, we do not
      source = null;
      setTimeout(() => call("/api/health").then(listen, (error) => { if (error.status !== 401) retryListen(); }), 2000);
    }
  });
}
const retryListen = () => setTimeout(() => call("/api/health").then(listen, (e) => { if (e.status !== 401) retryListen(); }), 3000);
async function begin() {
  let recent;
  try { recent = await call("/api/recent"); } catch (error) {
    if (error.status !== 401) { say_state(error.message, "bad"); setTimeout(begin, 3000); }
    return;
  }
  lines.replaceChildren();
  byKey.clear();
  $("empty").hidden = recent.lines.length > 0;
  recent.lines.forEach(show);
  chat.scrollTop = chat.scrollHeight;
  listen();
  refreshHealth();
  text.focus();
}
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname);
  try { await call("/api/login", {token}); } catch (error) { $("login-error").textContent = error.message; }
}
setInterval(() => { if (!document.hidden && source) refreshHealth(); }, HEALTH_EVERY);
begin();
