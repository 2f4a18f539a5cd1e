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

// ---- Theme: as the system, light, dark
{
  const button = $("theme");
  const names = { "": "as the system", light: "light", dark: "dark" };
  const next = { "": "light", light: "dark", dark: "" };
  let theme = "";
  const apply = () => {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    button.textContent = `Theme: ${names[theme]}`;
  };
  button.hidden = false;
  button.addEventListener("click", () => { theme = next[theme]; apply(); });
}

// ---- Tables: sorted by a click on a heading; missing values go last
function sortTable(table, column, heading) {
  const down = heading.getAttribute("aria-sort") !== "descending";
  const text = heading.dataset.kind === "text";
  // Figures start with the highest, names with the first.
  const sign = text ? (heading.getAttribute("aria-sort") === "ascending" ? -1 : 1) : (down ? -1 : 1);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
  const key = (row) => {
    const cell = row.cells[column];
    if (text) return cell.textContent.toLowerCase();
    return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
  };
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => {
    const [one, two] = [key(a), key(b)];
    if (one === null || two === null) return (one === null) - (two === null);
    return (one < two ? -1 : one > two ? 1 : 0) * sign;
  });
  table.tBodies[0].append(...rows);
}
for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = make("button", undefined, { type: "button", title: "sort by this column" });
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortTable(table, column, heading));
  });
}

// ---- The overview: part of the models, part of the benchmarks
{
  const form = $("filters");
  const table = $("t-overview");
  form.hidden = false;
  const apply = () => {
    const wanted = $("model-filter").value.trim().toLowerCase();
    const groups = new Set([...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
    const shown = [...table.tHead.rows[0].cells].map((cell, place) => place === 0 || groups.has(cell.dataset.group));
    let count = 0;
    for (const row of [table.tHead.rows[0], ...table.tBodies[0].rows]) {
      [...row.cells].forEach((cell, place) => { cell.hidden = !shown[place]; });
      if (row.parentElement === table.tBodies[0]) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        count += !row.hidden;
      }
    }
    $("filter-said").textContent = `${count} of ${table.tBodies[0].rows.length} models, ${shown.filter(Boolean).length - 1} of ${shown.length - 1} tasks`;
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}

// ---- Samples: files beside the page that call board.receive
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

const MOST_SHOWN = 300;
const RIGHT = 1 - 1e-9;
// A score of kind "more" is right at 1, of kind "less" at 0; a difference is no verdict.
const isRight = (score, kind) => (kind === "difference" ? score > 0 : kind === "less" ? score <= 0 : score >= RIGHT);
function verdict(score, kind) {
  if (score === null || score === undefined) return "–";
  if (kind === "difference") return `${score > 0 ? "+" : ""}${Number(score.toFixed(3))}`;
  if (isRight(score, kind)) return "right";
  return (kind === "less" ? score >= RIGHT : score <= 0) ? "wrong" : "partly";
}
const CLASSES = { right: "good", wrong: "bad", partly: "part", "–": "" };

function startBrowser(tasks) {
  const [task, a, b, metric, which, search] = ["task", "a", "b", "metric", "which", "search"].map((name) => $(`s-${name}`));
  const list = $("s-list");
  const detail = $("s-detail");
  let at = null;
  let turn = 0;
  const options = (select, names, first = []) => {
    const before = select.value;
    select.replaceChildren(...[...first, ...names].map((name, place) => make("option", name, { value: place < first.length ? "" : String(place - first.length) })));
    if ([...select.options].some((option) => option.value === before)) select.value = before;
  };
  const here = () => tasks[Number(task.value)];
  const fail = (error) => { $("s-said").textContent = error.message; };

  async function chooseTask() {
    options(a, here().models);
    options(b, here().models, ["none"]);
    options(metric, here().metrics);
    await chooseModels();
  }
  async function chooseModels() {
    const mine = ++turn;
    const { folder } = here();
    // Show no answers until those of the chosen models are loaded.
    at = null;
    list.replaceChildren();
    detail.replaceChildren();
    $("s-said").textContent = "Reading samples …";
    const [index, one, two] = await Promise.all([
      board.get(`${folder}/index`),
      board.get(`${folder}/answers-${a.value}`),
      b.value === "" ? null : board.get(`${folder}/answers-${b.value}`),
    ]);
    if (mine !== turn) return;
    at = { index, a: one, b: two };
    show();
  }
  const kind = () => here().kinds[Number(metric.value)];
  const score = (answers, place) => (answers ? answers.scores[place][Number(metric.value)] : null);
  function fits(place) {
    const [one, two] = [score(at.a, place), score(at.b, place)];
    const [good, fine] = [one, two].map((value) => isRight(value, kind()));
    const rules = {
      all: true, right: one !== null && good, wrong: one !== null && !good,
      a: one !== null && two !== null && good && !fine,
      b: one !== null && two !== null && fine && !good,
      differ: one !== null && two !== null && one !== two,
    };
    if (!rules[which.value]) return false;
    const wanted = search.value.trim().toLowerCase();
    if (!wanted) return true;
    return [at.index[place].join(" "), at.a.answers[place]?.[0] ?? "", at.b?.answers[place]?.[0] ?? ""].some((text) => text.toLowerCase().includes(wanted));
  }
  function show() {
    if (at === null) return;
    const found = [...at.index.keys()].filter(fits);
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map(item));
    const more = found.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} are listed` : "";
    $("s-said").textContent = `${found.length} of ${at.index.length} samples${more}`;
  }
  function item(place) {
    const entry = make("li");
    const button = make("button", undefined, { type: "button" });
    for (const answers of [at.a, at.b]) if (answers) {
      const said = verdict(score(answers, place), kind());
      button.append(make("span", said, { class: `verdict ${CLASSES[said] ?? ""}` }));
    }
    button.append(make("span", at.index[place][0] || `sample ${place + 1}`, { dir: "auto" }));
    button.addEventListener("click", () => open(place, button).catch(fail));
    entry.append(button);
    return entry;
  }
  async function open(place, button) {
    for (const other of list.querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const asked = at;
    const chunk = await board.get(`${here().folder}/documents-${Math.floor(place / content.chunk)}`);
    if (at !== asked) return; // other models were chosen meanwhile
    const doc = chunk[place % content.chunk];
    const parts = [make("h3", doc.id ? `Sample ${place + 1}: ${doc.id}` : `Sample ${place + 1}`)];
    parts.push(...texts("Right answer", doc.gold));
    for (const [select, answers] of [[a, at.a], [b, at.b]]) if (answers) parts.push(...answered(here().models[Number(select.value)], answers, place));
    for (const part of doc.parts) parts.push(...shown(part));
    doc.prompts.forEach((prompt, number) => parts.push(...texts(doc.prompts.length > 1 ? `Prompt ${number + 1}` : "Prompt", prompt)));
    detail.replaceChildren(...parts);
    detail.focus({ preventScroll: true });
  }
  function answered(name, answers, place) {
    const answer = answers.answers[place];
    if (!answer) return texts(`Answer of ${name}`, "(none was logged)");
    const said = verdict(score(answers, place), kind());
    const [heading, text] = texts(`Answer of ${name}`, answer[0]);
    const value = score(answers, place);
    heading.append(" ", make("span", value === null || value === undefined || kind() === "difference" ? said : `${said} (${Number(value.toFixed(3))})`, { class: `verdict ${CLASSES[said] ?? ""}` }));
    return [heading, text, ...(answer[1] ?? []).flatMap(shown)];
  }
  const texts = (title, text) => [make("h3", title), make("pre", text, { dir: "auto", tabindex: "0" })];
  function shown(part) {
    if (!part.table) return texts(part.title, part.text);
    const [head, ...rows] = part.table;
    const table = make("table");
    const line = make("tr");
    line.append(...head.map((cell) => make("th", cell, { scope: "col" })));
    table.append(make("thead"), make("tbody"));
    table.tHead.append(line);
    for (const row of rows) {
      const tr = make("tr");
      tr.append(...row.map((cell) => make("td", cell, { dir: "auto" })));
      table.tBodies[0].append(tr);
    }
    const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "region", "aria-label": part.title });
    scroll.append(table);
    return [make("h3", part.title), scroll];
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (next) { event.preventDefault(); next.focus(); }
  });
  const guard = (handler) => () => Promise.resolve(handler()).catch(fail);
  options(task, tasks.map((one) => one.name));
  task.addEventListener("change", guard(chooseTask));
  for (const select of [a, b]) select.addEventListener("change", guard(chooseModels));
  for (const select of [metric, which]) select.addEventListener("change", show);
  search.addEventListener("input", show);
  $("browser").addEventListener("submit", (event) => event.preventDefault());
  $("browser").hidden = false;
  guard(chooseTask)();
}
if (content.samples.length) startBrowser(content.samples);
