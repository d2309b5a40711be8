// A figure opens large, by a tap or by the button in its corner; Escape, a tap or the button "Close" shuts it.
document.addEventListener("DOMContentLoaded", () => {
  const images = document.querySelectorAll(".bd-article figure img, .bd-article div.cell_output img");
  if (!images.length) return;
  const dialog = document.createElement("dialog"), close = document.createElement("button");
  dialog.className = "zoom";
  Object.assign(close, { type: "button", textContent: "Close" });
  dialog.append(close);
  dialog.addEventListener("click", () => dialog.close());
  document.body.append(dialog);

  function open(image) {
    dialog.setAttribute("aria-label", image.alt);
    const large = Object.assign(new Image(), { src: image.currentSrc || image.src, alt: image.alt });
    // As large as the window, and larger where the picture has more to show, as on a phone.
    large.style.width = `${Math.max(window.innerWidth - 32, Math.min(image.naturalWidth, 2.5 * window.innerWidth))}px`;
    dialog.replaceChildren(close, large);
    dialog.showModal();
    dialog.scrollTo(0, 0);
  }

  for (const image of images) {
    if (image.closest("a, .jupyter-widgets, .advdiff-playground")) continue;
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "zoom-button", textContent: "⤢", ariaLabel: "Enlarge the figure" });
    button.addEventListener("click", () => open(image));
    image.addEventListener("click", () => open(image));
    image.parentElement.classList.add("zoomable");
    image.after(button);
  }
});
