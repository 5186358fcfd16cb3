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

  async function draw(figure) {
    const specification = JSON.parse(figure.querySelector("script").textContent);
    const options = {
      mode: "vega-lite", renderer: "svg", ast: true, // ast: expressions are interpreted, no eval needed
      actions: { export: true, source: false, compiled: false, editor: false },
      downloadFileName: document.title,
    };
    await window.vegaEmbed(figure.querySelector(".drawing"), themed(specification), options);
    figure.classList.add("drawn");
  }

  for (const figure of document.querySelectorAll("figure.chart")) {
    draw(figure).catch((error) => { figure.classList.add("undrawn"); console.error(error); });
  }

  // Long tables: search by any word, sort by any column. Only plain ones, whose rows stand for themselves.
  const LONG = 12;

  function cellText(row, column) { return row.cells[column].textContent.trim(); }

  function compare(a, b) {
    const x = Number(a), y = Number(b);
    return a !== "" && b !== "" && !isNaN(x) && !isNaN(y) ? x - y : a.localeCompare(b);
  }

  function sortBy(table, column, header) {
    const descending = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows].sort((a, b) => compare(cellText(a, column), cellText(b, column)));
    table.tBodies[0].append(...(descending ? rows.reverse() : rows));
  }

  function searchable(table, box) {
    const rows = [...table.tBodies[0].rows];
    const tools = document.createElement("p");
    const label = document.createElement("label");
    const field = document.createElement("input");
    const count = document.createElement("output");
    tools.className = "tools";
    field.type = "search";
    label.append("Search this table ", field);
    tools.append(label, " ", count);
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
      count.textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
    };
    field.addEventListener("input", show);
    show();
    box.before(tools);
  }

  for (const box of document.querySelectorAll(".scroll")) {
    const table = box.querySelector("table");
    const body = table && table.tHead && table.tBodies[0];
    if (!body || body.rows.length < LONG || body.querySelector("[rowspan], [colspan]")) continue;
    box.classList.add("long");
    searchable(table, box);
    for (const header of table.tHead.rows[0].cells) {
      if (header.colSpan > 1) continue;
      const sorter = document.createElement("button");
      const column = header.cellIndex;
      sorter.append(...header.childNodes);
      if (!sorter.textContent.trim()) sorter.textContent = "item";
      sorter.type = "button";
      sorter.title = "Sort by this column";
      sorter.addEventListener("click", () => sortBy(table, column, header));
      header.append(sorter);
    }
  }

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
