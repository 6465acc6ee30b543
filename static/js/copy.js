// Copies the text of an input. Without JavaScript the button stays hidden and the link can be selected.
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const input = document.getElementById(button.dataset.copy);
    const said = button.parentElement.querySelector("[role=status]");
    try {
      await navigator.clipboard.writeText(input.value);
      said.textContent = "Copied.";
    } catch {
      input.select();
      said.textContent = "Press Ctrl+C to copy.";
    }
  });
}
