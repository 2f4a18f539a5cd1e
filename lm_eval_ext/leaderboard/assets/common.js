"use strict";
// Nothing here makes markup of text: whatever models wrote goes in by textContent.
const content = JSON.parse(document.getElementById("content").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// ---- The address: "#section?what=is&shown=here", so that a link shows the same
const address = (() => {
  const [section, query] = [() => location.hash.slice(1).split("?")[0], () => location.hash.split("?")[1] ?? ""];
  let state = new URLSearchParams(query());
  const restorers = [];
  const write = () => history.replaceState(null, "", `#${section()}${state.size ? `?${state}` : ""}`);
  const get = (name) => state.get(name) ?? "";
  function set(values) {
    for (const [name, value] of Object.entries(values)) if (value) state.set(name, value); else state.delete(name);
    write();
  }
  const restore = () => restorers.forEach((restorer) => restorer());
  // The browser itself finds no place whose name is followed by a query.
  const go = () => { if (section() && query()) document.getElementById(section())?.scrollIntoView({ behavior: "instant" }); };
  window.addEventListener("hashchange", () => {
    if (location.hash.includes("?")) { state = new URLSearchParams(query()); restore(); go(); } else write();
  });
  function link(where) {
    return `${location.href.split("#")[0]}#${where ?? section()}${state.size ? `?${state}` : ""}`;
  }
  return { get, set, restorers, restore, go, link };
})();

// ---- Copying: without permission, the link is shown to be copied by hand
async function copy(button, text) {
  const before = button.dataset.text ??= button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const field = $("link");
    field.hidden = false;
    field.value = text;
    field.focus();
    field.select();
    button.textContent = document.execCommand("copy") ? "Copied" : "Copy it from the field";
  }
  setTimeout(() => { button.textContent = before; }, 2500);
}

// ---- Theme: as the system, light, dark
{
  const names = { "": "auto", light: "light", dark: "dark" };
  const next = { "": "light", light: "dark", dark: "" };
  let theme = "";
  $("theme").addEventListener("click", () => {
    theme = next[theme];
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    $("theme").textContent = `Theme: ${names[theme]}`;
  });
  $("copy").addEventListener("click", () => copy($("copy"), address.link()));
  document.querySelector(".tools").hidden = false;
}

// ---- Files beside the page call board.receive
const board = (() => {
  const received = new Map();
  const waiting = new Map();
  function receive(name, value) {
    received.set(name, value);
    for (const done of waiting.get(name) ?? []) done(value);
    waiting.delete(name);
  }
  function get(name) {
    if (received.has(name)) return Promise.resolve(received.get(name));
    return new Promise((resolve, reject) => {
      if (waiting.has(name)) { waiting.get(name).push(resolve); return; }
      waiting.set(name, [resolve]);
      const script = make("script", undefined, { src: `${name}.js` });
      script.addEventListener("error", () => { waiting.delete(name); reject(new Error(`${name}.js is not beside this page`)); });
      document.head.append(script);
    });
  }
  return { receive, get };
})();
