"use strict";
// Draws the charts in place of their pictures, and opens or folds all code at once. A page whose script does not run
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
