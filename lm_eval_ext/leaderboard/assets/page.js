"use strict";
// Nothing here makes markup of text: whatever models wrote goes in by textContent.
const $ = (id) => document.getElementById(id);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const tasks = JSON.parse($("content").textContent);
const tables = all("main > section table");
const RIGHT = 1 - 1e-9;

const current = (element, on, kind = "true") => (on ? element.setAttribute("aria-current", kind) : element.removeAttribute("aria-current"));
function make(tag, text, attributes = {}, ...nodes) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...nodes);
  return element;
}

// ---- The address: "#tab?what=is&shown=here". A link says all but the filter and the order of tables.
let state = new URLSearchParams();
const KEPT = ["find", "sort"];
const tab = () => location.hash.slice(1).split("?")[0] || "overview";
const link = (to, values) => {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ""));
  return `#${to}${query.size ? `?${query}` : ""}`;
};
function set(values) {
  for (const [name, value] of Object.entries(values)) if (value === "") state.delete(name); else state.set(name, value);
  const to = link(tab(), Object.fromEntries(state));
  if (to !== (location.hash || "#overview")) history.replaceState(null, "", to);
}
function go() {
  const query = location.hash.split("?")[1];
  if (query !== undefined) {
    const next = new URLSearchParams(query);
    for (const name of KEPT) if (state.has(name) && !next.has(name)) next.set(name, state.get(name));
    state = next;
  }
  const open = all("main > section").find((one) => one.id === tab()) ?? $("overview");
  for (const one of all("main > section")) one.classList.toggle("open", one === open);
  for (const one of all("nav a")) {
    current(one, one.hash === `#${open.id}`, "page");
    if (one.hash === `#${open.id}`) one.parentElement.scrollLeft = one.offsetLeft - 40;
  }
  for (const one of all("table", open)) widget(one);
  find();
  pick();
  scrollTo(0, 0);
  if (open.id === "samples") browser.restore();
  else set({ task: "", a: "", b: "", score: "", show: "", text: "", sample: "" });
  cell(open);
}

// ---- Tables: DataTables sorts by a click on a heading and finds models
const made = new Map();
function widget(table) {
  if (made.has(table)) return;
  const off = { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null };
  const rising = [0, ...all("thead th", table).flatMap((th, place) => (th.className === "lower" ? [place] : []))];
  const one = new DataTable(table, {
    paging: false, info: false, autoWidth: false, order: [], layout: off,
    columnDefs: [{ targets: rising, orderSequence: ["asc", "desc", ""] }, { targets: "_all", orderSequence: ["desc", "asc", ""] }],
  });
  made.set(table, one);
  const [id, column, way] = (state.get("sort") ?? "").split(" ");
  if (id === table.id && way) one.order([[Number(column), way]]).draw();
  one.on("order", () => {
    const [by] = one.order();
    const order = Array.isArray(by) ? by : [by?.idx, by?.dir];
    set({ sort: order[1] ? `${table.id} ${order[0]} ${order[1]}` : "" });
  });
}
function find() {
  const wanted = state.get("find") ?? "";
  const field = $("find");
  if (field) { field.hidden = tab() === "samples"; if (field.value !== wanted) field.value = wanted; }
  for (const [table, one] of made) {
    if (!table.classList.contains("across") && one.column(0).search() !== wanted) one.column(0).search(wanted).draw();
  }
}
$("find")?.addEventListener("input", () => { set({ find: $("find").value }); find(); });
function pick() {
  for (const select of all("[data-pick]")) {
    const options = [...select.options].map((one) => one.value);
    select.parentElement.hidden = options.length < 2;
    select.value = options.includes(state.get("table")) ? state.get("table") : options[0];
    for (const one of all(".picked", select.closest("section"))) {
      one.classList.toggle("open", one.querySelector("table").id === `t-${select.value}`);
    }
  }
}
for (const select of all("[data-pick]")) select.addEventListener("change", () => { set({ table: select.value }); pick(); });

// ---- Every number leads to its samples, and a sample back to its number
const places = new Map(tasks.map((one, place) => [one.task, place]));
const numbers = new Map();
for (const table of tables) {
  const heads = all("thead th", table);
  const tab = table.closest("section").id;
  for (const row of table.tBodies[0].rows) {
    [...row.cells].forEach((td, place) => {
      // Metrics are columns, or where there are more of them than models, rows.
      const { task, metric } = { ...heads[place].dataset, ...row.cells[0].dataset };
      const model = row.dataset.model ?? heads[place].dataset.model;
      const anchor = td.querySelector(":scope > a");
      td.dataset.label = [...heads[place].children].slice(0, 2).map((one) => one.textContent).join(" · ");
      if (!task || !place || model === undefined) return;
      numbers.set([tab, task, metric, model].join("\n"), td);
      const one = tasks[places.get(task)];
      const score = one?.scores.find((each) => each.metrics.includes(metric));
      if (!anchor || !score || !one.models.includes(model)) return;
      anchor.href = link("samples", { task, a: model, score: score.metrics[0], show: "wrong", sample: "first", from: `${tab} ${metric}` });
    });
  }
  if (table.querySelector("td > a:not([href])")) table.parentElement.after(make("p", "A number without a link has no samples in this page, or none with this score.", { class: "legend" }));
}
// The number that a sample came from: its tab is opened, and the number has the focus.
function cell(open) {
  const key = state.get("number");
  if (!key) return;
  const td = numbers.get([open.id, ...JSON.parse(key)].join("\n"));
  const picked = td?.closest(".picked");
  if (picked) { set({ table: picked.querySelector("table").id.slice(2) }); pick(); }
  for (const one of all("td.found")) one.classList.remove("found");
  td?.classList.add("found");
  td?.scrollIntoView({ block: "center", inline: "center" });
  td?.querySelector("a")?.focus({ preventScroll: true });
}

// ---- Differences of two texts, word by word (longest common subsequence)
const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
function marked(left, right) {
  const [a, b] = [words(left), words(right)];
  if (left === right || a.length * b.length > 4e6) return [[left], [right]];
  const width = b.length + 1;
  const longest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1] + 1
      : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  }
  const nodes = [[], []];
  let same = 0;
  const one = (side, word) => nodes[side].push(word.trim() ? make("mark", word) : word);
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) { same += Boolean(a[i].trim()); nodes[0].push(a[i++]); nodes[1].push(b[j++]); }
    else if (j >= b.length || (i < a.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) one(0, a[i++]);
    else one(1, b[j++]);
  }
  // Texts with little in common stay as they are.
  const solid = (list) => list.filter((word) => word.trim()).length;
  return 2 * same < Math.max(solid(a), solid(b)) ? [[left], [right]] : nodes;
}

// ---- Samples: the answers of one model or two
const MARKS = { right: "✓", wrong: "✗", partly: "~", "": "–" };
const isDifference = (kind) => kind === "gain" || kind === "loss";
function verdict(value, kind) {
  if (value === null) return "";
  if (isDifference(kind)) return value === 0 ? "partly" : (value > 0) === (kind === "gain") ? "right" : "wrong";
  const good = kind === "less" ? 1 - value : value;
  return good >= RIGHT ? "right" : good <= 1e-9 ? "wrong" : "partly";
}
const badge = (said) => make("span", MARKS[said], { class: `verdict ${said}`, role: "img", "aria-label": said || "no score" });
const texts = (title, ...nodes) => [make("h4", title), make("pre", undefined, { dir: "auto", tabindex: "0" }, ...nodes)];
function part(one) {
  if (!one.table) return texts(one.title, one.text);
  const [head, ...rows] = one.table.map((row, place) => make("tr", undefined, {}, ...row.map((text) => make(place ? "td" : "th", text))));
  for (const place of one.marked ?? []) rows[place].className = "differs";
  const table = make("table", undefined, {}, make("thead", undefined, {}, head), make("tbody", undefined, {}, ...rows));
  return [make("h4", one.title), make("div", undefined, { class: "scroll", tabindex: "0", role: "group", "aria-label": one.title }, table)];
}
const loaded = new Map();
async function load(place) {
  if (!loaded.has(place)) {
    const bytes = Uint8Array.from(atob($(`samples-${place}`).textContent), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const content = JSON.parse(await new Response(stream).text());
    loaded.set(place, content);
  }
  return loaded.get(place);
}

const browser = (() => {
  const [task, a, b, score, show, search] = ["task", "a", "b", "score", "show", "search"].map((name) => $(`s-${name}`));
  const [list, detail, box] = [$("s-list"), $("s-detail"), document.querySelector(".browser")];
  let [content, found, opened, turn] = [null, [], null, 0];
  const here = () => tasks[task.selectedIndex];
  const offer = (select, options, wanted) => {
    select.replaceChildren(...options.map(([value, text, title]) => make("option", text, { value, ...(title ? { title } : {}) })));
    select.value = wanted ?? "";
    if (select.selectedIndex === -1) select.selectedIndex = 0;
  };
  function remember() {
    set({ task: task.value, a: a.value, b: b.value || "none", score: score.value, show: show.value, text: search.value.trim(), sample: opened === null ? "" : String(opened + 1) });
  }
  async function restore() {
    const mine = ++turn;
    offer(task, tasks.map((one) => [one.task, one.title, one.task]), state.get("task"));
    const models = here().models.map((label) => [label, label]);
    offer(a, models, state.get("a"));
    const other = models.length === 2 ? here().models.find((label) => label !== a.value) : "";
    offer(b, [["", "none"], ...models], state.get("b") ?? other);
    offer(score, here().scores.map((one) => [one.metrics[0], one.title, one.metrics.join(", ")]), state.get("score"));
    // A difference is won or lost, or neither; other scores are right or wrong.
    const [right, wrong] = isDifference(here().scores[score.selectedIndex]?.kind) ? ["won", "lost"] : ["right", "wrong"];
    offer(show, [
      ["", "all"], ["wrong", `A is ${wrong}`], ["right", `A is ${right}`], ["a", `A is ${right}, B is ${wrong}`],
      ["b", `B is ${right}, A is ${wrong}`], ["differ", "A and B differ"],
    ], state.get("show"));
    search.value = state.get("text") ?? "";
    content = await load(task.selectedIndex);
    if (mine !== turn) return;
    const wanted = state.get("sample") ?? "first";
    filter();
    if (wanted === "first" && !found.length && show.value) { show.value = ""; filter(); }
    open(wanted === "first" ? found[0] ?? null : Number(wanted) - 1);
    document.documentElement.classList.toggle("reading-one", state.has("sample"));
  }
  const value = (model, place) => content.models[model].scores[score.selectedIndex][place];
  const says = (model, place) => verdict(value(model, place), here().scores[score.selectedIndex].kind);
  function answer(model, place) {
    const found = content.models[model].answers[place];
    return found === 0 ? content.documents[place][2] : found ?? "(no answer)";
  }
  const models = () => [a.value, b.value].filter(Boolean);
  function fits(place) {
    const [one, two] = models().map((model) => says(model, place));
    const { kind } = here().scores[score.selectedIndex];
    const wrong = (said) => said === "wrong" || (said === "partly" && !isDifference(kind));
    const rules = {
      "": true, wrong: wrong(one), right: one === "right", a: one === "right" && wrong(two), b: two === "right" && wrong(one),
      differ: models().length === 2 && value(a.value, place) !== value(b.value, place),
    };
    const wanted = search.value.trim().toLowerCase();
    const said = () => [content.documents[place][0], ...models().map((model) => answer(model, place))].join("\n").toLowerCase();
    return rules[show.value] && (!wanted || said().includes(wanted));
  }
  function filter() {
    found = content.documents.map((_, place) => place).filter(fits);
    list.replaceChildren(...found.map((place) => {
      const title = content.documents[place][0] || `sample ${place + 1}`;
      const button = make("button", undefined, { type: "button", "data-place": place }, ...models().map((model) => badge(says(model, place))), make("span", title, { dir: "auto" }));
      button.addEventListener("click", () => { open(place); remember(); document.documentElement.classList.add("reading-one"); detail.focus({ preventScroll: true }); });
      return make("li", undefined, {}, button);
    }));
    const { total } = here();
    const of = content.documents.length;
    $("s-said").textContent = `${found.length} of ${of} samples${total > of ? ` (of ${total.toLocaleString("en")} in all)` : ""}`;
  }
  function open(place) {
    opened = content.documents[place] ? place : null;
    box.classList.toggle("reading", opened !== null);
    for (const button of all("button", list)) {
      current(button, button.dataset.place === String(opened));
      if (button.dataset.place === String(opened)) button.scrollIntoView({ block: "nearest" });
    }
    if (opened === null) { detail.replaceChildren(make("p", "No sample is like this.", { class: "legend" })); return; }
    const [title, id, gold, parts, prompts] = content.documents[place];
    const folded = (title, text) => make("details", undefined, { class: "folded" }, make("summary", title), make("pre", text, { dir: "auto", tabindex: "0" }));
    const answers = models().map((model) => {
      const response = content.models[model].responses[place];
      const reason = content.models[model].reasons[place];
      const nodes = texts(model, ...marked(answer(model, place), gold)[0]);
      nodes[0].prepend(badge(says(model, place)), " ");
      nodes[0].append(make("small", `${here().scores[score.selectedIndex].title}: ${value(model, place) ?? "none"}`));
      if (reason) nodes.push(make("p", reason, { class: "reason", dir: "auto" }));
      if (response) nodes.push(folded(`Whole response, ${response.length.toLocaleString("en")} characters`, response));
      return make("div", undefined, {}, ...nodes, ...(content.models[model].parts[place] ?? []).flatMap(part));
    });
    const own = make("div", undefined, {}, ...texts("Right answer", gold), ...parts.filter((one) => one.beside).flatMap(part));
    const asked = prompts.flatMap((turns, number) => turns.flatMap(([role, text], step) => {
      const prompt = prompts.length > 1 ? `Prompt ${number + 1}` : "Prompt";
      return texts(role ? `${prompt}, turn ${step + 1}: ${role}` : prompt, text);
    }));
    detail.replaceChildren(
      steps(place), make("h3", title || `sample ${place + 1}`), ...(id ? [make("p", `Sample ${id}`, { class: "legend" })] : []),
      make("div", undefined, { class: "answers" }, own, ...answers), ...parts.filter((one) => !one.beside).flatMap(part),
      make("details", undefined, {}, make("summary", prompts.length > 1 ? `${prompts.length} prompts` : "Prompt"), ...asked),
    );
    detail.scrollTop = 0;
  }
  function steps(place) {
    const where = found.indexOf(place);
    const bar = make("div", undefined, { class: "steps" }, make("output", where < 0 ? "" : `${where + 1} of ${found.length}`));
    const [from, metric] = (state.get("from") ?? "").split(" ");
    const number = JSON.stringify([task.value, metric, a.value]);
    if (numbers.has([from, task.value, metric, a.value].join("\n"))) bar.prepend(make("a", "← Back to the number", { href: link(from, { number }) }));
    const every = make("button", "All samples", { type: "button", class: "all" });
    every.addEventListener("click", () => { box.classList.remove("reading"); document.documentElement.classList.remove("reading-one"); list.querySelector("[aria-current]")?.focus(); });
    bar.append(every);
    for (const [text, step] of [["Previous", -1], ["Next", 1]]) {
      const button = make("button", text, { type: "button" });
      button.disabled = found[where + step] === undefined;
      button.addEventListener("click", () => {
        open(found[where + step]);
        remember();
        const again = all(".steps button", detail).find((one) => one.textContent === text);
        (again.disabled ? detail : again).focus({ preventScroll: true });
      });
      bar.append(button);
    }
    return bar;
  }
  if (tasks.length) {
    for (const field of [task, a, b, score, show, search]) {
      field.addEventListener("input", async () => {
        const keep = [a, b, score].includes(field) ? state.get("sample") ?? "" : "";
        if (field === task) set({ task: task.value, score: "", show: "", text: "", sample: "" });
        else { remember(); set({ sample: keep }); }
        await restore();
        remember();
      });
    }
    list.addEventListener("keydown", (event) => {
      const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
      const next = step && event.target.closest("li")?.[step]?.firstElementChild;
      if (next) { event.preventDefault(); next.focus(); }
    });
    $("browser").addEventListener("submit", (event) => event.preventDefault());
    $("browser").hidden = box.hidden = false;
  }
  return { restore };
})();
addEventListener("hashchange", go);
go();
