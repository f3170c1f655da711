// Files that go with the next message: chosen, dropped or pasted, sent to the gateway at once.

import {upload} from "./wire.js";

const $ = (id) => document.getElementById(id);
const MOST = 10;
let waiting = [];     // {name, item, file: what the gateway answered, done: promise}
let onFault = () => {};

export const whenRefused = (react) => { onFault = react; };
export const names = (files) => files.map((file) => `📎 ${file.name || "file"}`);

// What is to be sent: waits for what is still on its way, and empties the list.
export async function take() {
  const mine = waiting;
  waiting = [];
  await Promise.all(mine.map((one) => one.done));
  mine.forEach((one) => one.item.remove());
  show();
  return mine.filter((one) => one.file).map((one) => one.file);
}
export const isEmpty = () => waiting.length === 0;

function add(files) {
  for (const file of files) {
    if (waiting.length >= MOST) { onFault(`at most ${MOST} files go with one message`); break; }
    const one = {name: file.name || "picture.png", item: chip(file.name || "picture.png"), file: null};
    one.item.querySelector("button").addEventListener("click", () => remove(one));
    one.done = upload(file, one.name).then(
      (answer) => { one.file = answer; one.item.classList.remove("sending"); },
      (error) => { remove(one); onFault(`${one.name} was not taken: ${error.message}`); },
    );
    waiting.push(one);
    $("files").append(one.item);
  }
  show();
}
function remove(one) {
  waiting = waiting.filter((other) => other !== one);
  one.file = null;
  one.item.remove();
  show();
}
function show() { $("files").hidden = $("files").childElementCount === 0; }
function chip(name) {
  const item = document.createElement("li"), label = document.createElement("span"), button = document.createElement("button");
  item.className = "sending";
  label.textContent = name;
  button.type = "button";
  button.textContent = "✕";
  button.setAttribute("aria-label", `Remove ${name}`);
  item.append(label, button);
  return item;
}

$("attach").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => { add($("file").files); $("file").value = ""; });
$("text").addEventListener("paste", (event) => {
  const files = event.clipboardData ? event.clipboardData.files : [];
  if (files.length) { event.preventDefault(); add(files); }
});
document.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
document.addEventListener("drop", (event) => {
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  add(event.dataTransfer.files);
});
