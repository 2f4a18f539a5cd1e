// ---- Plots: drawn as images; on demand with tooltips and a legend that filters
for (const figure of document.querySelectorAll("figure.picture")) {
  const button = make("button", "Values and filter", { type: "button" });
  figure.append(button);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const [spec] = await Promise.all([board.get(`plots/${figure.dataset.name}`), board.get("plots/vega")]);
      const drawing = figure.querySelector(".drawing");
      await window.vegaEmbed(drawing, spec, { renderer: "svg", actions: false, logLevel: 1 });
      // One image with one text, as before.
      drawing.setAttribute("role", "img");
      for (const part of drawing.querySelectorAll("[role], [aria-label]")) for (const name of ["role", "aria-label", "aria-roledescription"]) part.removeAttribute(name);
      button.remove();
    } catch (error) {
      button.textContent = error.message;
    }
  });
}
