// Swagger UI is dark below this class: as the person chose (annotation/access/languages.py), else as the device asks.
const page = document.documentElement;
const device = matchMedia("(prefers-color-scheme: dark)");
const setLook = () => page.classList.toggle("dark-mode", page.dataset.theme ? page.dataset.theme === "dark" : device.matches);
device.addEventListener("change", setLook);
setLook();
