// One event stream a browser: the tab that holds the lock reads it and tells the others. (A browser opens
// at most six connections to a host; a stream in each tab would leave none for the seventh.)

const NAME = "hermes.stream";
const ANSWER_MS = 3000;      // a leader that does not answer for so long is asleep: another tab takes over
const LOOK_MS = 5000;
const AGAIN_MS = 2000;

export class Stream {
  // hear: {line, live, status, position, soFar}; probe: rejects while the gateway refuses us
  constructor(hear, probe) {
    this.hear = hear;
    this.probe = probe;
    this.source = null;
    this.leads = false;
    this.open = false;
    this.seen = this.heard = 0;
    this.heartbeat = 15;
    this.channel = "BroadcastChannel" in window ? new BroadcastChannel(NAME) : null;
    if (this.channel) this.channel.onmessage = (event) => this.told(event.data);
    setInterval(() => this.look(), LOOK_MS);
    document.addEventListener("visibilitychange", () => this.look());
    addEventListener("online", () => { if (this.leads) this.connect(); });
  }
  start() {
    if (this.leads) this.connect();
    else if (!navigator.locks || !this.channel) this.lead();
    else { this.queue({}); this.channel.postMessage({kind: "join"}); }
  }
  stop() {
    if (this.source) this.source.close();
    this.source = null;
    this.open = false;
  }

  // ---- who reads ----

  queue(how) {
    if (this.queued && !how.steal) return;
    this.queued = true;
    navigator.locks.request(NAME, how, () => { this.lead(); return new Promise(() => {}); })
      .catch(() => { this.queued = this.leads = false; this.stop(); this.queue({}); });   // another tab took over
  }
  lead() {
    this.leads = true;
    this.connect();
  }
  look() {
    if (this.leads) {
      if (this.source && Date.now() - this.seen > (2.5 * this.heartbeat + 5) * 1000) this.connect();   // a dead line
      return;
    }
    if (!this.channel || !this.queued || document.hidden) return;
    const asked = Date.now();
    this.channel.postMessage({kind: "ping"});
    setTimeout(() => { if (!this.leads && this.heard < asked && !document.hidden) this.queue({steal: true}); }, ANSWER_MS);
  }
  told(message) {
    if (this.leads) {
      if (message.kind === "ping") this.tell({kind: "pong"});
      if (message.kind === "join") this.tell({kind: "state", open: this.open, soFar: this.hear.soFar()});
      return;
    }
    if (message.kind === "ping" || message.kind === "join") return;
    this.heard = Date.now();
    switch (message.kind) {
      case "line": this.hear.line(message.data); break;
      case "live": this.hear.live(message.data); break;
      case "status": this.hear.status(message.open, message.fresh); break;
      case "state":
        this.hear.status(message.open, true);
        message.soFar.forEach((event) => this.hear.live(event));
    }
  }
  tell(message) { if (this.channel) this.channel.postMessage(message); }

  // ---- the stream ----

  connect() {
    this.stop();
    this.seen = Date.now();
    const source = this.source = new EventSource(`/api/events?after=${encodeURIComponent(this.hear.position())}`);
    const on = (name, react) => source.addEventListener(name, (event) => {
      if (source !== this.source) return;
      this.seen = Date.now();
      react(event);
    });
    on("open", () => this.status(true, true));
    on("hello", (event) => { this.heartbeat = JSON.parse(event.data).heartbeat; });
    on("beat", () => {});
    on("line", (event) => { const data = JSON.parse(event.data); this.hear.line(data); this.tell({kind: "line", data}); });
    on("live", (event) => { const data = JSON.parse(event.data); this.hear.live(data); this.tell({kind: "live", data}); });
    on("error", () => {
      this.status(false, false);
      if (source.readyState === EventSource.CLOSED) { this.source = null; this.again(); }   // refused: it gave up, we do not
    });
  }
  status(open, fresh) {
    this.open = open;
    this.hear.status(open, fresh);
    this.tell({kind: "status", open, fresh});
  }
  again() {
    setTimeout(async () => {
      if (this.source || !this.leads) return;
      try { await this.probe(); } catch (error) { if (error.status !== 401) this.again(); return; }
      this.connect();
    }, AGAIN_MS);
  }
}
