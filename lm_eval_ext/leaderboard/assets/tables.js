// ---- Tables: sorted by a click on a heading; missing values go last
{
  const tables = [...document.querySelectorAll("table.sortable")];
  const original = new Map(tables.map((table) => [table, [...table.tBodies[0].rows]]));

  function sortTable(table, column, down) {
    const heading = table.tHead.rows[0].cells[column];
    const text = heading.dataset.kind === "text";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const cell = row.cells[column];
      if (text) return cell.textContent.toLowerCase();
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [one, two] = [key(a), key(b)];
      if (one === null || two === null) return (one === null) - (two === null);
      return (one < two ? -1 : one > two ? 1 : 0) * (down ? -1 : 1);
    });
    table.tBodies[0].append(...rows);
  }
  function write() {
    const sorted = tables.map((table) => [table, [...table.tHead.rows[0].cells].findIndex((cell) => cell.ariaSort)]);
    address.set({ sort: sorted.filter(([, column]) => column >= 0).map(([table, column]) => `${table.id}.${column}.${table.tHead.rows[0].cells[column].ariaSort[0]}`).join(",") });
  }
  function restore() {
    const wanted = new Map(address.get("sort").split(",").map((one) => one.split(".")).map(([id, column, way]) => [id, [Number(column), way === "d"]]));
    for (const table of tables) {
      const [column, down] = wanted.get(table.id) ?? [];
      if (table.tHead.rows[0].cells[column]) {
        sortTable(table, column, down);
        const fold = table.closest("details");
        if (fold) fold.open = true;
      } else if (table.querySelector("[aria-sort]")) {
        table.querySelector("[aria-sort]").removeAttribute("aria-sort");
        table.tBodies[0].append(...original.get(table));
      }
    }
  }
  for (const table of tables) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", undefined, { type: "button", title: "sort by this column" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const before = heading.getAttribute("aria-sort");
        // The best first: the highest, the lowest where less is better, names from A.
        const rising = heading.dataset.kind === "text" || heading.dataset.less;
        sortTable(table, column, before ? before === "ascending" : !rising);
        write();
      });
    });
  }
  address.restorers.push(restore);
}

// ---- Filters: part of the models in all tables, part of the benchmarks in those that have several
{
  const form = $("filters");
  const [matrix, all] = [$("t-matrix"), $("t-overview")];
  const [name, family, weights, size, complete] = ["name", "family", "weights", "size", "complete"].map((one) => $(`f-${one}`));
  const facts = Object.values(content.models);
  const SIZES = { "up to 1B": [0, 1e9], "1B to 10B": [1e9, 1e10], "10B to 100B": [1e10, 1e11], "over 100B": [1e11, Infinity] };
  const fits = (value, range) => value !== null && value > range[0] && value <= range[1];
  function offer(select, values) {
    select.replaceChildren(make("option", "any", { value: "" }), ...values.map((value) => make("option", value, { value })));
    select.parentElement.hidden = values.length < 2;
  }
  offer(family, [...new Set(facts.map((one) => one.family).filter(Boolean))].sort());
  offer(weights, [...new Set(facts.map((one) => one.weights).filter(Boolean))].sort());
  offer(size, Object.keys(SIZES).filter((range) => facts.some((one) => fits(one.size, SIZES[range]))));
  const boxes = (kind) => [...document.querySelectorAll(`input[name=${kind}]`)];
  const off = (kind) => boxes(kind).filter((box) => !box.checked).map((box) => box.value);

  function apply() {
    const [groups, columns] = [new Set(off("group")), new Set(off("column"))];
    const shown = (table) => [...table.tHead.rows[0].cells].map((cell, place) => place === 0 || !cell.dataset.group ? true
      : !groups.has(cell.dataset.group) && !(table === all && columns.has(content.tasks[place - 1])));
    for (const table of [matrix, all]) {
      const visible = shown(table);
      for (const row of table.rows) [...row.cells].forEach((cell, place) => { cell.hidden = !visible[place]; });
    }
    const wanted = name.value.trim().toLowerCase();
    const lacking = new Set([...matrix.tBodies[0].rows].filter((row) => [...row.cells].some((cell, place) => place > 0 && !cell.hidden && cell.dataset.value === undefined)).map((row) => row.dataset.model));
    const passes = ([label, about]) => label.toLowerCase().includes(wanted)
      && (!family.value || about.family === family.value)
      && (!weights.value || about.weights === weights.value)
      && (!size.value || fits(about.size, SIZES[size.value]))
      && !(complete.checked && lacking.has(label));
    const left = new Set(Object.entries(content.models).filter(passes).map(([label]) => label));
    for (const row of document.querySelectorAll("tr[data-model]")) row.hidden = !left.has(row.dataset.model);
    const tasks = shown(all).slice(1);
    $("filter-said").textContent = `${left.size} of ${facts.length} models, ${tasks.filter(Boolean).length} of ${tasks.length} tasks`;
  }
  function changed() {
    apply();
    address.set({ models: name.value.trim(), family: family.value, weights: weights.value, size: size.value, complete: complete.checked ? "1" : "", without: off("group").join(","), "without-tasks": off("column").join(",") });
  }
  address.restorers.push(() => {
    for (const [field, key] of [[name, "models"], [family, "family"], [weights, "weights"], [size, "size"]]) {
      field.value = address.get(key);
      if (field.selectedIndex === -1) field.value = "";
    }
    complete.checked = Boolean(address.get("complete"));
    for (const [kind, key] of [["group", "without"], ["column", "without-tasks"]]) {
      const hidden = new Set(address.get(key).split(","));
      for (const box of boxes(kind)) box.checked = !hidden.has(box.value);
    }
    apply();
  });
  const fold = $("filter-fold");
  fold.hidden = $("columns").hidden = false;
  fold.open = window.matchMedia("(min-width: 48rem)").matches;
  for (const place of [form, $("columns")]) place.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
}
