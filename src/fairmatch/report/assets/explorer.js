// The explorer: a list of people, sorted and filtered, and one person beside the counterpart.
// Everything from the data becomes text through textContent, never markup.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("people-data").textContent);
  const section = document.getElementById("explorer");
  const form = section.querySelector("form");
  const status = section.querySelector(".status");
  const panel = section.querySelector(".person");
  const head = section.querySelector(".people thead tr");
  const body = section.querySelector(".people tbody");
  const pager = section.querySelector(".pager");
  const PAGE = 25;
  const state = { page: 0, sort: null, down: true, person: null, pair: null, onlyDiffering: false };

  function element(tag, options = {}, ...children) {
    const { text, on, ...attributes } = options;
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    for (const [name, listener] of Object.entries(on || {})) made.addEventListener(name, listener);
    made.append(...children);
    return made;
  }
  // Isolated, so that text of the other direction stays in its place; names may break at "_".
  function isolated(text) {
    const made = element("bdi");
    String(text).split("_").forEach((part, k) => {
      if (k) made.append("_", element("wbr"));
      made.append(part);
    });
    return made;
  }
  // What rounds to nothing has no sign.
  const number = (value, digits) => (value === null || value === undefined ? "–" : value.toFixed(digits).replace(/^-(?=[0.]*$)/, ""));

  const many = data.groups.length > 2;
  const chosen = (name) => (form[name].value === "" ? null : Number(form[name].value));

  // What the chosen model, matching and two groups make of the people; made once for each choice.
  const views = new Map();
  function view() {
    const groups = many ? [chosen("group"), chosen("other")].sort().join("-") : "";
    const key = `${form.model.value} ${form.matching.value} ${groups}`;
    if (!views.has(key)) views.set(key, makeView(Number(form.model.value), form.matching.value));
    return views.get(key);
  }

  function makeView(at, matching) {
    const model = data.models[at];
    const table = data.tables[model.table];
    const pairs = model.pairs[matching];
    const own = table.ids.map(() => []);
    const directed = matching === "near";
    const both = many ? [chosen("group"), chosen("other")] : null;
    for (let k = 0; k < pairs.first.length; k++) {
      const first = pairs.first[k], second = pairs.second[k];
      if (both && !(both.includes(table.group[first]) && both.includes(table.group[second]))) continue;
      own[first].push(k);
      if (!directed) own[second].push(k);
    }
    const heaviest = (a, b) => pairs.mass[b] - pairs.mass[a] || a - b;
    for (const list of own) list.sort(heaviest);
    const other = (person, k) => (pairs.first[k] === person ? pairs.second[k] : pairs.first[k]);
    const flips = (person, k) => model.selected[person] !== model.selected[other(person, k)];
    const rows = [];
    for (let person = 0; person < table.n_listed; person++) {
      const flip = own[person].find((k) => flips(person, k));
      if (own[person].length) rows.push({ person, heaviest: own[person][0], flip });
    }
    return { model, table, pairs, own, other, flips, rows, directed };
  }

  const texts = new Map();
  function text(table, person) {
    const key = `${data.tables.indexOf(table)} ${person}`;
    if (!texts.has(key)) {
      const values = table.columns.map((column) => shown(column, person));
      texts.set(key, [table.ids[person], ...values].join("\n").toLowerCase());
    }
    return texts.get(key);
  }

  function shown(column, person) {
    const value = column.values[person];
    if (value === null) return "missing";
    return column.levels ? column.levels[value] : String(value);
  }

  const COLUMNS = [
    { key: "id", title: "Person" },
    { key: "group", title: "Group" },
    { key: "score", title: "Score", numeric: true },
    { key: "mate", title: "Counterpart", by: null },
    { key: "gap", title: "Score gap", numeric: true },
    { key: "distance", title: "Squared distance", numeric: true },
  ];
  const columns = () => COLUMNS.filter((c) => (c.key !== "distance" || view().pairs.distance.length)
    && (c.key !== "group" || chosen("group") === null));

  function compare(a, b) {
    const x = a[state.sort], y = b[state.sort];
    const order = typeof x === "string" ? x.localeCompare(y, "en", { numeric: true }) : x - y;
    return (state.down ? -order : order) || a.person - b.person;
  }

  function chosenRows() {
    const { rows, table, model, pairs, other, flips } = view();
    const words = form.text.value.trim().toLowerCase();
    const group = chosen("group");
    return rows
      .filter(({ person, flip }) => (group === null || table.group[person] === group)
        && (!form.flips.checked || flip !== undefined)
        && (words === "" || text(table, person).includes(words)))
      .map(({ person, heaviest, flip }) => {
        // Of several counterparts the heaviest is shown, or the one that the filter asks for.
        const k = form.flips.checked ? flip : heaviest;
        return {
          person, k,
          mate: other(person, k),
          id: table.ids[person],
          group: table.group[person],
          score: model.scores[person],
          gap: pairs.gap[k],
          distance: pairs.distance.length ? pairs.distance[k] : null,
          flip: flips(person, k),
        };
      })
      .sort(compare);
  }

  function sortBy(key) {
    state.down = state.sort === key ? !state.down : key === "gap" || key === "distance";
    state.sort = key;
    state.page = 0;
    drawList();
    // The heading was drawn anew: whoever came by keyboard stays where they were.
    head.querySelector(`[data-sort="${key}"]`).focus();
  }

  function drawHead() {
    head.replaceChildren(...columns().map((column) => {
      const cell = element("th", { scope: "col", "data-key": column.key });
      if (column.numeric) cell.className = "number";
      if (column.by === null) {
        cell.textContent = column.title;
        return cell;
      }
      const sorted = state.sort === column.key;
      if (sorted) cell.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      const arrow = element("span", { "aria-hidden": "true", class: "arrow", text: sorted ? (state.down ? "▼" : "▲") : "↕" });
      cell.append(element("button", { type: "button", "data-sort": column.key, on: { click: () => sortBy(column.key) } }, column.title, " ", arrow));
      return cell;
    }));
  }

  // Of two groups the larger has the first colour, as in the charts; of many, the chosen one.
  const place = (group) => (many ? (group === chosen("group") ? 1 : 2) : data.order.indexOf(group) + 1);
  const swatch = (group) => element("span", { class: `swatch group-${place(group)}`, "aria-hidden": "true" });

  // Who is in the list, where it is not everybody who was matched.
  function drawn(table) {
    if (many && ![chosen("group"), chosen("other")].includes(data.reference)) {
      return ", drawn to match two groups neither of which is the largest";
    }
    return table.n_listed < data.n_people ? `, a sample of the ${data.n_people.toLocaleString("en")} who were matched` : "";
  }

  function drawList() {
    const { table, model } = view();
    if (!columns().some((c) => c.key === state.sort)) {
      state.sort = view().pairs.distance.length ? "distance" : "gap";
      state.down = true;
    }
    const rows = chosenRows();
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    drawHead();
    body.replaceChildren(...rows.slice(state.page * PAGE, (state.page + 1) * PAGE).map((row) => {
      const current = row.person === state.person;
      const pick = element("button", { type: "button", class: "pick", on: { click: () => choose(row.person, row.k) } }, isolated(row.id));
      if (current) pick.setAttribute("aria-current", "true");
      const cells = {
        id: [pick],
        group: [swatch(row.group), isolated(data.groups[row.group])],
        score: [number(row.score, 3)],
        mate: [isolated(table.ids[row.mate])],
        gap: [number(row.gap, 3)],
        distance: [number(row.distance, 2)],
      };
      if (row.flip) cells.mate.push(" ", element("span", { class: "flip", text: "flip" }));
      const line = element("tr", current ? { class: "current" } : {});
      for (const column of columns()) {
        line.append(element(column.key === "id" ? "th" : "td",
          { "data-key": column.key, ...(column.key === "id" ? { scope: "row" } : column.numeric ? { class: "number" } : {}) }, ...cells[column.key]));
      }
      line.addEventListener("click", (event) => {
        if (!event.target.closest("button")) choose(row.person, row.k);
      });
      return line;
    }));
    status.textContent = `${rows.length.toLocaleString("en")} of ${view().rows.length.toLocaleString("en")} ${data.unit}${drawn(table)}. ${model.rule ? `${model.outcome[0].toUpperCase()}${model.outcome.slice(1)}: ${model.rule}.` : "Scores are predictions in units of the target."}`;
    pager.hidden = pages === 1;
    pager.querySelector(".page-number").textContent = `Page ${state.page + 1} of ${pages}`;
    pager.querySelector('[data-step="-1"]').disabled = state.page === 0;
    pager.querySelector('[data-step="1"]').disabled = state.page === pages - 1;
  }

  function choose(person, pair = null, follow = false) {
    state.person = person;
    state.pair = pair;
    // What was chosen is drawn anew: whoever came by keyboard stays on it.
    const at = document.activeElement;
    const chosenAgain = at.matches(".pick") ? ".pick[aria-current]" : at.matches(".mates button") ? '.mates [aria-pressed="true"]' : null;
    drawList();
    drawPerson();
    if (follow || window.matchMedia("(max-width: 860px)").matches) panel.focus();
    else if (chosenAgain) section.querySelector(chosenAgain)?.focus();
  }

  function describe(person) {
    const { table, model } = view();
    const label = table.labels.length ? `, ${model.labels[table.labels[person]] ?? "label missing"}` : "";
    const decided = model.rule ? `, ${model.selected[person] ? model.outcome : model.other}` : "";
    return element("p", { class: "who" }, swatch(table.group[person]), isolated(table.ids[person]),
      element("span", { class: "what" }, isolated(data.groups[table.group[person]]),
        `${model.chances.length ? "" : `, score ${number(model.scores[person], 3)}`}${decided}${label}`));
  }

  function drawPerson() {
    const { table, model, pairs, own, other, flips, directed } = view();
    const person = state.person;
    if (person === null || !own[person] || !own[person].length) {
      panel.replaceChildren(element("p", { class: "hint", text: "No person is chosen. Choose one from the list." }));
      return;
    }
    const k = own[person].includes(state.pair) ? state.pair : own[person][0];
    const mate = other(person, k);
    const total = own[person].reduce((sum, j) => sum + pairs.mass[j], 0);
    const parts = [element("h3", {}, "Person ", isolated(table.ids[person])), describe(person)];

    const matching = data.matchings[form.matching.value];
    if (own[person].length > 1) {
      const choices = element("div", { class: "mates", role: "group", "aria-label": "Counterparts" });
      for (const j of own[person]) {
        const button = element("button", { type: "button", "aria-pressed": String(j === k), on: { click: () => choose(person, j) } },
          isolated(table.ids[other(person, j)]), directed ? "" : ` ${Math.round((100 * pairs.mass[j]) / total)}%`);
        choices.append(button);
      }
      parts.push(element("p", { class: "hint", text: `${own[person].length} counterparts (${matching}), ${directed ? "the nearest first" : "with their weights"}:` }), choices);
    } else {
      parts.push(element("p", { class: "hint", text: `Counterpart (${matching}):` }));
    }
    parts.push(describe(mate));
    if (person >= table.n_listed) {
      parts.push(element("p", { class: "hint", text: "This person is not in the list; only pairs with people of the list are shown." }));
    }
    const distance = pairs.distance.length ? `, squared distance ${number(pairs.distance[k], 2)}` : "";
    const facts = element("p", { class: "pair-facts" }, `Score gap ${number(pairs.gap[k], 3)}${distance}. `);
    if (flips(person, k)) facts.append(element("span", { class: "flip", text: "flip" }), ` One is ${model.outcome}, the other is ${model.other}.`);
    parts.push(facts);
    // Somebody's nearest person need not have been drawn to be matched.
    if (own[mate].length) {
      parts.push(element("p", {}, element("button", { type: "button", class: "follow", on: { click: () => choose(mate, k, true) } },
        "Go to ", isolated(table.ids[mate]))));
    }
    if (model.chances.length) parts.push(vectors(table, model, person, mate));
    if (table.columns.length) parts.push(...comparison(table, person, mate));
    if (table.hidden.length) parts.push(element("p", { class: "hint" }, "Hidden: ", isolated(table.hidden_words.join(", "))));
    panel.replaceChildren(...parts);
  }

  // The probabilities of all classes, side by side; the largest of a person is marked.
  function vectors(table, model, person, mate) {
    const most = (who) => Math.max(...model.chances.map((column) => column.values[who]));
    const lines = model.chances.map((column) => element("tr", {}, element("th", { scope: "row" }, isolated(column.words)),
      ...[person, mate].map((who) => element("td", { class: "number" },
        element(column.values[who] === most(who) ? "strong" : "span", { text: number(column.values[who], 3) })))));
    const heads = [element("th", { scope: "col", text: "Probability of" }), ...[person, mate].map((who) =>
      element("th", { scope: "col", class: "number" }, isolated(table.ids[who])))];
    return element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Probabilities of both people" },
      element("table", { class: "vectors" }, element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines)));
  }

  function comparison(table, person, mate) {
    const rows = table.columns.map((column) => ({
      name: column.words,
      own: shown(column, person),
      other: shown(column, mate),
      differs: column.values[person] !== column.values[mate],
    }));
    const n = rows.filter((row) => row.differs).length;
    const toggle = element("input", { type: "checkbox", on: {
      change: (event) => {
        state.onlyDiffering = event.target.checked;
        drawPerson();
        panel.querySelector(".check input").focus();
      },
    } });
    toggle.checked = state.onlyDiffering;
    const body = element("tbody");
    for (const row of rows) {
      if (state.onlyDiffering && !row.differs) continue;
      const line = element("tr", row.differs ? { class: "differs" } : {});
      line.append(
        element("th", { scope: "row" }, isolated(row.name)),
        element("td", {}, isolated(row.own)),
        element("td", { class: "mark" }, row.differs ? element("span", { role: "img", "aria-label": "differs", text: "≠" }) : ""),
        element("td", {}, isolated(row.other)));
      body.append(line);
    }
    const heads = [element("th", { scope: "col", text: "Column" }), element("th", { scope: "col" }, isolated(table.ids[person])),
      element("td", { class: "mark" }), element("th", { scope: "col" }, isolated(table.ids[mate]))];
    return [
      element("p", {}, `They differ in ${n} of ${rows.length} columns. `, element("label", { class: "check" }, toggle, " Only these")),
      element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Columns of both people" },
        element("table", { class: "pair" }, element("thead", {}, element("tr", {}, ...heads)), body)),
    ];
  }

  function option(value, text) {
    return element("option", { value, text });
  }
  form.model.append(...data.models.map((model, k) => option(k, model.name)));
  form.querySelector(".model-choice").hidden = data.models.length === 1;
  // Which groups are matched with a group, under the chosen model and matching.
  function matchedWith(group) {
    const model = data.models[Number(form.model.value)];
    const codes = data.tables[model.table].group;
    const pairs = model.pairs[form.matching.value];
    const found = new Set();
    for (let k = 0; k < pairs.first.length; k++) {
      const a = codes[pairs.first[k]], b = codes[pairs.second[k]];
      if (group === null || a === group) found.add(b);
      if (group === null || b === group) found.add(a);
    }
    return data.order.filter((code) => found.has(code));
  }
  const named = (code) => option(code, data.groups[code]);
  function fillGroups() {
    form.querySelector(".other-choice").hidden = !many;
    if (!many) {
      if (!form.group.options.length) form.group.append(option("", "both"), ...data.order.map(named));
      return;
    }
    const kept = chosen("group"), known = matchedWith(null);
    form.group.replaceChildren(...known.map(named));
    const first = known.find((code) => code !== data.reference);
    form.group.value = known.includes(kept) ? kept : first;
    fillOthers();
  }
  function fillOthers() {
    const kept = chosen("other"), known = matchedWith(chosen("group"));
    form.other.replaceChildren(...known.map(named));
    form.other.value = known.includes(kept) ? kept : known[0];
  }
  function fillMatchings() {
    const kept = form.matching.value;
    const names = Object.keys(data.matchings).filter((name) => name in data.models[Number(form.model.value)].pairs);
    form.matching.replaceChildren(...names.map((name) => option(name, data.matchings[name])));
    form.matching.value = names.includes(kept) ? kept : names[0];
  }
  function startWithFirst() {
    const first = chosenRows()[0];
    state.person = first ? first.person : null;
    state.pair = first ? first.k : null;
  }
  fillMatchings();
  fillGroups();

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", (event) => {
    if (event.target.name === "model") {
      fillMatchings();
      if (data.tables.length > 1) state.person = null;
    }
    if (["model", "matching"].includes(event.target.name)) fillGroups();
    if (event.target.name === "group" && many) fillOthers();
    if (many && ["model", "matching", "group", "other"].includes(event.target.name)) state.person = null;
    state.page = 0;
    state.pair = null;
    drawList();
    if (state.person === null) startWithFirst();
    drawList();
    drawPerson();
  });
  pager.addEventListener("click", (event) => {
    const step = event.target.dataset.step;
    if (!step) return;
    state.page += Number(step);
    drawList();
  });

  form.hidden = false;
  section.querySelector(".explorer").hidden = false;
  drawList();
  startWithFirst();
  drawList();
  drawPerson();
})();
