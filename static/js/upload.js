// Uploads chosen files part by part with tus-js-client: goes on after a lost connection or a reload, pauses and cancels,
// then sends the form. Without it the form sends the files itself.
const { Upload } = tus;
const PART = 8 << 20;
const WAITS = [1000, 2000, 4000, 8000, ...Array(240).fill(15000)]; // an hour without an answer
const form = document.querySelector("[data-upload]");
const input = form.querySelector("input[type=file]");
const list = form.querySelector("[data-uploads]");
const said = form.querySelector("[role=status]");
const words = form.dataset;
const settings = {
  endpoint: new URL(words.upload, location.href).href,
  headers: { "X-CSRFToken": form.querySelector("[name=csrfmiddlewaretoken]").value },
  chunkSize: PART,
  retryDelays: WAITS,
  storeFingerprintForResuming: false, // the page lists what has come, for every browser of the person
};

const known = (file) => [...form.querySelectorAll("[data-url]")].find((one) =>
  one.dataset.name === file.name && Number(one.dataset.size) === file.size && one.dataset.modified === String(file.lastModified));

function button(label, act) {
  const made = document.createElement("button");
  [made.type, made.className, made.textContent] = ["button", "button small", label];
  made.addEventListener("click", act);
  return made;
}

function again(error) {
  const status = error.originalResponse?.getStatus();
  const waits = !status || status >= 500 || [409, 423].includes(status);
  if (waits) said.textContent = words.lost;
  return waits;
}

function why(error) {
  const answer = error.originalResponse;
  // An answer that is no refusal and none of the protocol is the page to sign in, to which the browser was sent.
  if (answer && answer.getStatus() < 300) return words.signedOut;
  const isText = answer?.getHeader("Content-Type")?.startsWith("text/plain");
  return (isText && answer.getBody().slice(0, 300)) || words.failed;
}

class Line {
  constructor(file) {
    this.file = file;
    this.cancelled = false;
    this.item = list.appendChild(document.createElement("li"));
    this.bar = document.createElement("progress");
    this.bar.max = file.size || 1;
    this.bar.value = 0;
    this.bar.setAttribute("aria-label", file.name);
    this.share = document.createElement("span");
    this.share.className = "num small muted";
    this.pause = button(words.pause, () => this.toggle());
    this.pause.hidden = true;
    this.cancel = button(words.cancel, () => this.stop());
    this.item.append(file.name, this.bar, this.share, this.pause, this.cancel);
  }

  send() {
    return new Promise((resolve, reject) => {
      this.leave = resolve;
      this.pause.hidden = false;
      this.upload = new Upload(this.file, {
        ...settings,
        uploadUrl: known(this.file)?.dataset.url,
        metadata: { filename: this.file.name, modified: String(this.file.lastModified) },
        onShouldRetry: again,
        onProgress: (sent, size) => {
          said.textContent = words.going;
          this.bar.value = sent;
          this.share.textContent = `${Math.floor(100 * sent / size)}%`;
        },
        onSuccess: () => resolve(this.upload.url.match(/(\d+)\/$/)[1]),
        onError: (error) => reject(new Error(why(error))),
      });
      this.upload.start();
    });
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.textContent = this.paused ? words.resume : words.pause;
    said.textContent = this.paused ? words.paused : words.going;
    if (this.paused) this.upload.abort();
    else this.upload.start();
  }

  async stop() {
    this.cancelled = true;
    this.item.remove();
    known(this.file)?.remove();
    await this.upload?.abort(true).catch(() => {}); // what the server could not delete now, it deletes a day later
    this.leave?.(null);
  }
}

form.querySelector("button.primary").hidden = !form.querySelector("[type=checkbox]");
said.textContent = words.ready;
input.addEventListener("change", async () => {
  if (!input.files.length) return;
  list.replaceChildren();
  const lines = [...input.files].map((file) => new Line(file));
  input.disabled = true;
  try {
    for (const line of lines) {
      const number = line.cancelled ? null : await line.send();
      line.pause.hidden = true;
      if (line.cancelled || number === null) continue;
      line.cancel.hidden = true;
      const field = form.appendChild(document.createElement("input"));
      [field.type, field.name, field.value] = ["hidden", "upload", number];
    }
    if (form.querySelector("[type=hidden][name=upload]")) return form.submit();
    said.textContent = words.ready;
  } catch (error) {
    for (const field of form.querySelectorAll("[type=hidden][name=upload]")) field.remove();
    for (const one of list.querySelectorAll("button")) one.remove();
    said.textContent = error.message;
  }
  input.disabled = false;
  input.value = "";
});
