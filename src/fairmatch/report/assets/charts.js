// Draws every chart of the page, and opens the tables for print.
"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  // "ast" has expressions interpreted: the page's policy does not allow code made from text.
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false };
  const drawn = Array.from(document.querySelectorAll("[data-chart]"), async (place) => {
    try {
      await vegaEmbed(place, specs[Number(place.dataset.chart)], options);
      // The name and the table stand beside the chart.
      place.querySelector("svg").setAttribute("aria-hidden", "true");
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are below.";
      console.error(error);
    }
  });
  Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", ""));

  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
})();
