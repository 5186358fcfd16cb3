"use strict";
// Draws the charts in place of their pictures, opens or folds all code at once, sorts and searches long tables. A page whose script does not run
// still shows everything: pictures instead of charts, and code that opens cell by cell.
(function () {
  // Ink, lines and ground come from the page, so that a dark page and a printed one need no other chart.
  const page = {
    axis: { labelColor: "currentColor", titleColor: "currentColor", gridColor: "currentColor", gridOpacity: 0.14,
            domainColor: "currentColor", domainOpacity: 0.5, tickColor: "currentColor", tickOpacity: 0.5 },
    legend: { labelColor: "currentColor", titleColor: "currentColor" },
    header: { labelColor: "currentColor", titleColor: "currentColor" },
    title: { color: "currentColor", subtitleColor: "currentColor" },
  };

  function themed(specification) {
    const config = Object.assign({}, specification.config, { background: null });
    for (const part of Object.keys(page)) config[part] = Object.assign({}, config[part], page[part]);
    return Object.assign({}, specification, { config: config });
  }

  // One picture with one description, instead of a name for every line and dot in it.
  function describe(figure) {
    const wrapper = figure.querySelector(".chart-wrapper");
    for (const part of wrapper.querySelectorAll("svg, svg *")) {
      for (const name of ["role", "aria-roledescription", "aria-label", "aria-hidden"]) part.removeAttribute(name);
    }
    for (const name of ["aria-roledescription", "tabindex"]) wrapper.removeAttribute(name);
    wrapper.setAttribute("role", "img");
    wrapper.setAttribute("aria-label", figure.getAttribute("aria-label"));
  }

  async function draw(figure) {
    const specification = JSON.parse(figure.querySelector("script").textContent);
    const options = {
      mode: "vega-lite", renderer: "svg", ast: true, // ast: expressions are interpreted, no eval needed
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: document.title,
    };
    await window.vegaEmbed(figure.querySelector(".drawing"), themed(specification), options);
    describe(figure);
    figure.classList.add("drawn");
  }

  for (const figure of document.querySelectorAll("figure.chart")) {
    draw(figure).catch((error) => { figure.classList.add("undrawn"); console.error(error); });
  }

  // Long tables: search by any word, show some kind of rows only, sort by any column.
  const LONG = 12, KINDS = 12;

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function cellText(row, column) { return row.cells[column].textContent.trim(); }

  // "1,234", "12 %" and "0.91 [0.88, 0.94]" are sorted by their number; what has none comes last.
  function number(text) {
    const found = text.replace(/[,\u2212]/g, (sign) => (sign === "," ? "" : "-")).match(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?(?![\w.])/i);
    return found ? Number(found[0]) : NaN;
  }

  function sortBy(table, column, header) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].map((row) => [row, cellText(row, column)]);
    const numbers = rows.filter(([, text]) => !isNaN(number(text))).length > rows.length / 2;
    const missing = (text) => (numbers ? isNaN(number(text)) : text === "");
    rows.sort(([, a], [, b]) => {
      if (missing(a) || missing(b)) return missing(a) - missing(b);
      return (descending ? -1 : 1) * (numbers ? number(a) - number(b) : a.localeCompare(b));
    });
    table.tBodies[0].append(...rows.map(([row]) => row));
  }

  // A label that stands for several rows is written into each, so that every row stands for itself.
  function repeatLabels(body) {
    for (const cell of body.querySelectorAll("[rowspan]")) {
      let row = cell.parentElement;
      const column = cell.cellIndex, times = cell.rowSpan;
      cell.removeAttribute("rowspan");
      for (let n = 1; n < times && row.nextElementSibling; n += 1) {
        row = row.nextElementSibling;
        const copy = cell.cloneNode(true);
        copy.classList.add("repeated");
        row.insertBefore(copy, row.cells[column] || null);
      }
      if (cell.scope === "rowgroup") cell.scope = "row";
    }
  }

  // Columns with few different words: a choice each.
  function choices(table, rows) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    return heads.map((head, column) => {
      const values = [...new Set(rows.map((row) => cellText(row, column)))].sort();
      const words = values.some((text) => text && isNaN(number(text)));
      if (!words || values.length < 2 || values.length > KINDS || values.length > rows.length / 2) return null;
      const field = element("select", {}, element("option", { value: "" }, "all"));
      for (const value of values) field.append(element("option", { value: "=" + value }, value || "(none)"));
      return { column: column, field: field, name: head.textContent.trim() || "item" };
    }).filter(Boolean).slice(0, 4);
  }

  function searchable(table, box) {
    const rows = [...table.tBodies[0].rows];
    const search = element("input", { type: "search" });
    const count = element("output");
    const chosen = choices(table, rows);
    const tools = element("p", { className: "tools" }, element("label", {}, "Search this table ", search));
    for (const { field, name } of chosen) tools.append(" ", element("label", {}, name + " ", field));
    tools.append(" ", count);
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        const kind = chosen.every(({ column, field }) => !field.value || field.value === "=" + cellText(row, column));
        row.hidden = !(kind && words.every((word) => text.includes(word)));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    tools.addEventListener("input", show);
    tools.addEventListener("change", show);
    show();
    box.before(tools);
  }

  for (const box of document.querySelectorAll(".scroll")) {
    const table = box.querySelector("table");
    const body = table && table.tHead && table.tBodies[0];
    if (!body || body.rows.length < LONG || body.querySelector("[colspan]:not([colspan='1'])")) continue;
    repeatLabels(body);
    if (new Set([...body.rows].map((row) => row.cells.length)).size > 1) continue;
    box.classList.add("long");
    searchable(table, box);
    const heads = table.tHead.rows[table.tHead.rows.length - 1];
    if (heads.cells.length !== body.rows[0].cells.length) continue;
    for (const header of heads.cells) {
      const sorter = element("button", { type: "button", title: "Sort by this column" }, ...header.childNodes);
      if (!sorter.textContent.trim()) sorter.textContent = "item";
      sorter.addEventListener("click", () => sortBy(table, header.cellIndex, header));
      header.scope = "col";
      header.append(sorter);
    }
  }

  // Files in the page are packed; a browser that can unpacks them. Any other keeps the packed file.
  async function unpack(link) {
    const packed = Uint8Array.from(atob(link.href.split(",", 2)[1]), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const file = new Blob([await new Response(stream).arrayBuffer()], { type: link.dataset.kind });
    const address = URL.createObjectURL(file);
    element("a", { href: address, download: link.dataset.name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
  }

  for (const link of document.querySelectorAll("a[data-name]")) {
    if (!window.DecompressionStream) break;
    link.addEventListener("click", (event) => { event.preventDefault(); unpack(link).catch(console.error); });
  }

  // On a small screen the text comes first and the contents open on demand.
  const contents = document.querySelector(".contents details");
  if (contents && window.matchMedia("(max-width: 71.99rem)").matches) contents.open = false;

  const button = document.querySelector("button.switch");
  const folded = document.querySelectorAll("details.code");
  if (button && folded.length) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(open));
      button.textContent = open ? "Hide all code" : "Show all code";
      for (const details of folded) details.open = open;
    });
  }
})();
