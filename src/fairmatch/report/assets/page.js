// Opens and closes the parts of the page.
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
})();
