// ---- Samples: the answers of one model or two
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

const texts = (title, ...nodes) => {
  const text = make("pre", undefined, { dir: "auto", tabindex: "0" });
  text.append(...nodes);
  return [make("h3", title), text];
};
function tableOf(part) {
  const [head, ...rows] = part.table;
  const table = make("table");
  const line = make("tr");
  line.append(...head.map((cell) => make("th", cell, { scope: "col" })));
  table.append(make("caption", part.title), make("thead"), make("tbody"));
  table.tHead.append(line);
  rows.forEach((row, place) => {
    const tr = make("tr", undefined, part.marked?.includes(place) ? { class: "differs" } : {});
    tr.append(...row.map((cell) => make("td", cell, { dir: "auto" })));
    table.tBodies[0].append(tr);
  });
  const scroll = make("div", undefined, { class: "scroll", tabindex: "0", role: "group", "aria-label": part.title });
  scroll.append(table);
  return [make("h3", part.title), scroll];
}
function shown(part) {
  const own = part.table ? tableOf(part) : texts(part.title, part.text);
  return part.beside ? [columns([own, shown(part.beside)])] : own;
}
function columns(lists) {
  const beside = make("div", undefined, { class: "answers" });
  for (const nodes of lists) { const column = make("div"); column.append(...nodes); beside.append(column); }
  return beside;
}

function startBrowser(tasks) {
  const [task, a, b, metric, which, search] = ["task", "a", "b", "metric", "which", "search"].map((name) => $(`s-${name}`));
  const list = $("s-list");
  const detail = $("s-detail");
  const hint = detail.firstChild;
  let at = null;
  let turn = 0;
  let found = [];
  let opened = null;
  const options = (select, names, first = []) => {
    select.replaceChildren(...[...first, ...names].map((name, place) => make("option", name, { value: place < first.length ? "" : name })));
  };
  // Chooses a name, or what stands first if there is no such.
  const choose = (select, name) => { select.value = name; if (select.selectedIndex === -1) select.selectedIndex = 0; };
  const here = () => tasks[task.selectedIndex];
  const fail = (error) => { $("s-said").textContent = error.message; };
  const guard = (handler) => (...given) => Promise.resolve(handler(...given)).catch(fail);

  function remember() {
    address.set({ task: task.value, a: a.value, b: b.value, score: metric.selectedIndex ? metric.value : "", show: which.value === "all" ? "" : which.value, find: search.value.trim(), sample: opened === null ? "" : String(opened + 1) });
  }
  async function restore() {
    choose(task, address.get("task"));
    offerModels([address.get("a"), address.get("b"), address.get("score")]);
    choose(which, address.get("show") || "all");
    search.value = address.get("find");
    const place = Number(address.get("sample")) - 1;
    await read();
    if (at?.index[place]) await open(place);
  }
  function offerModels([one, two, score]) {
    options(a, here().models);
    options(b, here().models, ["none"]);
    options(metric, here().metrics);
    [[a, one], [b, two], [metric, score]].forEach(([select, name]) => choose(select, name));
  }
  async function read() {
    const mine = ++turn;
    const { folder, models } = here();
    // Show no answers until those of the chosen models are loaded.
    at = opened = null;
    list.hidden = true;
    list.replaceChildren();
    detail.replaceChildren(hint);
    $("s-said").textContent = "Reading samples …";
    const [index, one, two] = await Promise.all([
      board.get(`${folder}/index`),
      board.get(`${folder}/answers-${models.indexOf(a.value)}`),
      b.value === "" ? null : board.get(`${folder}/answers-${models.indexOf(b.value)}`),
    ]);
    if (mine !== turn) return;
    at = { index, a: one, b: two };
    show();
  }
  const kind = () => here().kinds[metric.selectedIndex];
  const score = (answers, place) => (answers ? answers.scores[place][metric.selectedIndex] : null);
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
    found = [...at.index.keys()].filter(fits);
    list.replaceChildren(...found.slice(0, MOST_SHOWN).map(item));
    list.hidden = !found.length;
    const more = found.length > MOST_SHOWN ? `, the first ${MOST_SHOWN} are listed` : "";
    $("s-said").textContent = `${found.length} of ${at.index.length} samples${more}`;
  }
  function item(place) {
    const entry = make("li");
    const button = make("button", undefined, { type: "button", "data-place": place });
    for (const answers of [at.a, at.b]) if (answers) {
      const said = verdict(score(answers, place), kind());
      button.append(make("span", said, { class: `verdict ${CLASSES[said] ?? ""}` }));
    }
    button.append(make("span", at.index[place][0] || `sample ${place + 1}`, { dir: "auto" }));
    button.addEventListener("click", guard(async () => { await open(place); remember(); detail.focus({ preventScroll: true }); }));
    if (place === opened) button.setAttribute("aria-current", "true");
    entry.append(button);
    return entry;
  }
  async function open(place) {
    const asked = at;
    const chunk = await board.get(`${here().folder}/documents-${Math.floor(place / content.chunk)}`);
    if (at !== asked) return; // other models were chosen meanwhile
    opened = place;
    for (const button of list.querySelectorAll("button")) {
      if (Number(button.dataset.place) !== place) { button.removeAttribute("aria-current"); continue; }
      button.setAttribute("aria-current", "true");
      // Within the list alone: the page stays where it is.
      const [top, bottom] = [button.offsetTop - list.offsetTop, button.offsetTop - list.offsetTop + button.offsetHeight];
      if (top < list.scrollTop || bottom > list.scrollTop + list.clientHeight) list.scrollTop = top;
    }
    const doc = chunk[place % content.chunk];
    const both = [[a, at.a], [b, at.b]].filter(([, answers]) => answers).map(([select, answers]) => [select.value, answers, answers.answers[place]?.[0] ?? ""]);
    // Two answers are compared with each other, one with the right one.
    const [left, right] = marked(both[0][2], both[1]?.[2] ?? doc.gold);
    const gold = texts("Right answer", ...(both[1] ? [doc.gold] : right));
    const parts = [steps(place), make("h3", doc.id ? `Sample ${place + 1}: ${doc.id}` : `Sample ${place + 1}`)];
    parts.push(...gold, columns(both.map(([name, answers], side) => answered(name, answers, place, side ? right : left))));
    for (const part of doc.parts) parts.push(...shown(part));
    doc.prompts.forEach((prompt, number) => parts.push(...texts(doc.prompts.length > 1 ? `Prompt ${number + 1}` : "Prompt", prompt)));
    detail.replaceChildren(...parts);
  }
  function steps(place) {
    const bar = make("div", undefined, { class: "steps" });
    const where = found.indexOf(place);
    bar.append(make("output", where < 0 ? "" : `${where + 1} of ${found.length}`));
    for (const [text, step] of [["Previous", -1], ["Next", 1]]) {
      const button = make("button", text, { type: "button", "data-step": step });
      button.disabled = found[where + step] === undefined;
      button.addEventListener("click", guard(async () => {
        await open(found[where + step]);
        remember();
        const again = detail.querySelector(`[data-step="${step}"]`);
        (again.disabled ? detail : again).focus({ preventScroll: true });
      }));
      bar.append(button);
    }
    const button = make("button", "Copy link to this sample", { type: "button" });
    button.addEventListener("click", () => { remember(); copy(button, address.link("samples")); });
    bar.append(button);
    return bar;
  }
  function answered(name, answers, place, nodes) {
    const answer = answers.answers[place];
    if (!answer) return texts(`Answer of ${name}`, "(none was logged)");
    const said = verdict(score(answers, place), kind());
    const [heading, text] = texts(`Answer of ${name}`, ...nodes);
    const value = score(answers, place);
    heading.append(" ", make("span", value === null || value === undefined || kind() === "difference" ? said : `${said} (${Number(value.toFixed(3))})`, { class: `verdict ${CLASSES[said] ?? ""}` }));
    return [heading, text, ...(answer[1] ?? []).flatMap(shown)];
  }
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const buttons = [...list.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    if (next) { event.preventDefault(); next.focus(); }
  });
  options(task, tasks.map((one) => one.name));
  task.addEventListener("change", guard(async () => { offerModels([a.value, b.value, metric.value]); await read(); remember(); }));
  for (const select of [a, b]) select.addEventListener("change", guard(async () => { const place = opened; await read(); if (place !== null && at) await open(place); remember(); }));
  for (const select of [metric, which]) select.addEventListener("change", () => { show(); remember(); });
  search.addEventListener("input", () => { show(); remember(); });
  $("browser").addEventListener("submit", (event) => event.preventDefault());
  $("browser").hidden = false;
  address.restorers.push(guard(restore));
}
if (content.samples.length) startBrowser(content.samples);
