// Opens and closes the parts of the page, draws its charts, and prepares it for print.
"use strict";
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));

  // A link or an address that names a place inside a closed part opens it.
  function openTo(hash) {
    const target = hash.length > 1 ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    if (!target) return;
    for (let each = target; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", () => openTo(location.hash));
  openTo(location.hash);
  const tools = document.querySelector(".tools");
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    const wanted = event.target.dataset.all;
    if (wanted) for (const each of all("details.section")) each.open = wanted === "open";
  });

  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  // "ast" has expressions interpreted: the page's policy does not allow code made from text.
  const options = { ast: true, actions: false, renderer: "svg", defaultStyle: false };
  const views = new Map();

  // How wide a place is when its part is open; nothing is painted while this is measured.
  function widthOf(place) {
    const closed = [];
    for (let each = place; each; each = each.parentElement) {
      if (each.tagName === "DETAILS" && !each.open) closed.push(each);
    }
    for (const each of closed) each.open = true;
    const width = place.clientWidth;
    for (const each of closed) each.open = false;
    return width;
  }
  const resized = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const view = views.get(target);
      if (view && contentRect.width > 0 && Math.abs(view.width() - contentRect.width) > 1) {
        view.width(contentRect.width).runAsync();
      }
    }
  });
  const drawn = all("[data-chart]").map(async (place) => {
    try {
      const spec = { ...specs[Number(place.dataset.chart)], width: widthOf(place) };
      views.set(place, (await vegaEmbed(place, spec, options)).view);
      // The name and the table stand beside the chart.
      place.querySelector("svg").setAttribute("aria-hidden", "true");
      resized.observe(place);
    } catch (error) {
      place.textContent = "This chart could not be drawn; its numbers are below.";
      console.error(error);
    }
  });
  Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", ""));

  // On paper everything is open, but people's rows only if their part was opened.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = all("details:not([open]):not(#explorer)");
    for (const each of opened) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });
})();
