// The page's two ways to the gateway: calls, and lines that are sent until the gateway has them.

export class Refused extends Error {
  constructor(status, sentence) { super(sentence); this.status = status; }
}

const CALL_SECONDS = 20, UPLOAD_SECONDS = 120;
let onSignedOut = () => {};
export const whenSignedOut = (react) => { onSignedOut = react; };

export async function call(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, {...options, signal: AbortSignal.timeout(CALL_SECONDS * 1000)});
  } catch {
    throw new Refused(0, "the gateway does not answer");
  }
  if (response.status === 401 && path !== "/api/login") onSignedOut();
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || `HTTP ${response.status}`);
  return answer;
}

// One file's bytes; what the gateway answers is named in a message afterwards.
export async function upload(file, name) {
  let response;
  try {
    response = await fetch(`/api/upload?name=${encodeURIComponent(name)}`, {
      method: "POST", headers: {"Content-Type": file.type || "application/octet-stream"}, body: file,
      signal: AbortSignal.timeout(UPLOAD_SECONDS * 1000),
    });
  } catch {
    throw new Refused(0, "the gateway does not answer");
  }
  if (response.status === 401) onSignedOut();
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || `HTTP ${response.status}`);
  return answer.file;
}

export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID();   // absent on plain http from another machine
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 15) | 64; b[8] = (b[8] & 63) | 128;
  const h = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return `${h.slice(0, 8)}-${h.slice(8, 12)}-${h.slice(12, 16)}-${h.slice(16, 20)}-${h.slice(20)}`;
}

const KEPT = "hermes.unsent";
const KEPT_SECONDS = 15 * 60;   // an older line is not sent by itself: its moment has passed
const FIRST_WAIT = 1000, LONGEST_WAIT = 15000;

// Lines go in the order they were typed, one at a time. Each carries its own UUID, so sending it again
// (after a lost answer, a reload, or from a second tab) makes no second line.
export class Outbox {
  constructor(onState) {
    this.onState = onState;   // (item, "sending" | "waiting" | "received" | "refused", sentence)
    this.items = [];
    this.busy = false;
    this.wake = () => {};
  }
  restore() {
    const oldest = Date.now() / 1000 - KEPT_SECONDS;
    for (const item of read()) {
      if (item.at > oldest && !this.items.some((mine) => mine.key === item.key)) this.items.push(item);
    }
    write(this.items);
    return [...this.items];
  }
  push(text, files = []) {
    const item = {key: uuid(), text, files, at: Date.now() / 1000};
    this.items.push(item);
    write([...read(), item]);
    return item;
  }
  kick() {
    this.wake();
    if (!this.busy) this.run();
  }
  done(key) {
    this.items = this.items.filter((item) => item.key !== key);
    write(read().filter((item) => item.key !== key));
  }
  async run() {
    this.busy = true;
    for (let wait = FIRST_WAIT; this.items.length > 0;) {
      const item = this.items[0];
      this.onState(item, "sending", "sending …");
      try {
        await call("/api/say", {key: item.key, text: item.text, files: item.files || []});
        this.done(item.key);
        this.onState(item, "received", "");
        wait = FIRST_WAIT;
      } catch (error) {
        if (error.status >= 400 && error.status < 500 && ![401, 408, 429].includes(error.status)) {
          this.done(item.key);
          this.onState(item, "refused", error.message);
          continue;
        }
        this.onState(item, "waiting", `not sent yet: ${error.message}. It is sent as soon as it can be.`);
        await new Promise((go) => { this.wake = go; setTimeout(go, wait); });
        wait = Math.min(wait * 2, LONGEST_WAIT);
      }
    }
    this.busy = false;
  }
}

function read() {
  try { return JSON.parse(localStorage.getItem(KEPT)) || []; } catch { return []; }
}
function write(items) {
  try {
    if (items.length) localStorage.setItem(KEPT, JSON.stringify(items)); else localStorage.removeItem(KEPT);
  } catch { /* no storage here: the line lives as long as this page */ }
}
