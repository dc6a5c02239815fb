/* Tables of class "sortable": a heading with data-sort becomes a button that orders the rows by its column.
   data-sort is text (from a to z first), number (largest first) or number-up (smallest first). What has no value stays
   last, whichever the order. Rows are moved, never written. */
"use strict";

(() => {
  const words = new Intl.Collator("en", { numeric: true });

  function value(row, column, kind) {
    const cell = row.cells[column];
    if (!cell) return null;
    const text = cell.dataset.value ?? cell.querySelector("data")?.value ?? cell.textContent.trim();
    if (kind === "text") return text || null;
    return text === "" || Number.isNaN(Number(text)) ? null : Number(text);
  }

  function order(body, column, kind, sign) {
    const rows = [...body.rows].map((row) => [value(row, column, kind), row]);
    rows.sort(([one], [other]) => {
      if (one === null || other === null) return (one === null) - (other === null);
      return sign * (kind === "text" ? words.compare(one, other) : one - other);
    });
    body.append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    heads.forEach((head, column) => {
      const kind = head.dataset.sort;
      if (!kind) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const [first, second] = kind === "number" ? ["descending", "ascending"] : ["ascending", "descending"];
        const now = head.getAttribute("aria-sort") === first ? second : first;
        for (const each of heads) if (each.hasAttribute("aria-sort")) each.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", now);
        order(table.tBodies[0], column, kind, now === "ascending" ? 1 : -1);
      });
    });
    table.classList.add("live");
  }
})();
