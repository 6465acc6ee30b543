// Uploads chosen files part by part (tus 1.0.0), goes on after a lost connection or a reload, then sends the form.
// Without it the form sends the files itself.
const PART = 8 << 20;
const form = document.querySelector("[data-upload]");
const input = form.querySelector("input[type=file]");
const list = form.querySelector("[data-uploads]");
const said = form.querySelector("[role=status]");
const words = form.dataset;
const headers = { "Tus-Resumable": "1.0.0", "X-CSRFToken": form.querySelector("[name=csrfmiddlewaretoken]").value };
const encode = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Refused extends Error {}

async function send(url, options) {
  for (let wait = 1000; ; wait = Math.min(2 * wait, 15000)) {
    try {
      const answer = await fetch(url, { redirect: "manual", ...options, headers: { ...headers, ...options.headers } });
      if (answer.type === "opaqueredirect") throw new Refused(words.signedOut);
      if (answer.status < 500) return answer;
    } catch (error) {
      if (error instanceof Refused) throw error;
    }
    said.textContent = words.lost;
    await pause(wait);
    // What has come of a part that broke off, the server says.
    if (options.method === "PATCH") return null;
  }
}

async function begin(file) {
  const known = [...form.querySelectorAll("[data-url]")].find((one) =>
    one.dataset.name === file.name && Number(one.dataset.size) === file.size && one.dataset.modified === String(file.lastModified));
  if (known) return known.dataset.url;
  const metadata = `filename ${encode(file.name)},modified ${encode(String(file.lastModified))}`;
  const answer = await send(words.upload, { method: "POST", headers: { "Upload-Length": file.size, "Upload-Metadata": metadata } });
  if (answer.status !== 201) throw new Refused((await answer.text()).slice(0, 300) || words.failed);
  return answer.headers.get("Location");
}

async function upload(file) {
  const line = list.appendChild(document.createElement("li"));
  const bar = document.createElement("progress");
  line.append(file.name, bar);
  bar.max = file.size || 1;
  bar.setAttribute("aria-label", file.name);
  const url = await begin(file);
  for (let offset = null; offset !== file.size; ) {
    const part = offset === null ? null : file.slice(offset, offset + PART);
    const type = { "Content-Type": "application/offset+octet-stream", "Upload-Offset": offset };
    const answer = await send(url, part ? { method: "PATCH", body: part, headers: type } : { method: "HEAD" });
    const at = answer?.headers.get("Upload-Offset");
    if (answer && at === null) throw new Refused(words.failed);
    offset = answer ? Number(at) : null;
    if (offset !== null) said.textContent = words.going;
    bar.value = offset ?? bar.value;
  }
  return url.match(/(\d+)\/$/)[1];
}

form.querySelector("button").hidden = true;
said.textContent = words.ready;
input.addEventListener("change", async () => {
  const files = [...input.files];
  if (!files.length) return;
  list.replaceChildren();
  input.disabled = true;
  try {
    for (const file of files) {
      const field = form.appendChild(document.createElement("input"));
      [field.type, field.name, field.value] = ["hidden", "upload", await upload(file)];
    }
    form.submit();
  } catch (error) {
    for (const field of form.querySelectorAll("[name=upload]")) field.remove();
    said.textContent = error instanceof Refused ? error.message : words.failed;
    input.disabled = false;
    input.value = "";
  }
});
