/** A page with a query box: what `/` shows where the console is not built in. It asks nobody but this server. */
export const PLAIN_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sundial</title>
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Ccircle cx='8' cy='8' r='7' fill='%23e8a33d'/%3E%3Cpath d='M8 8V2M8 8l4 3' stroke='%23fff' stroke-width='2' stroke-linecap='round'/%3E%3C/svg%3E">
<style>
  :root {
    color-scheme: light dark;
    --ground: light-dark(#f6f6f3, #16181c); --paper: light-dark(#fff, #1e2127); --ink: light-dark(#1d2126, #e4e6ea);
    --faint: light-dark(#6a7078, #9299a3); --line: light-dark(#dcddd8, #343943); --sun: light-dark(#b86e00, #e8a33d);
    --fault: light-dark(#b3261e, #ff8a80);
  }
  * { box-sizing: border-box; }
  body { margin: 0; height: 100vh; display: flex; flex-direction: column; background: var(--ground); color: var(--ink);
    font: 14px/1.45 system-ui, sans-serif; }
  header, form, #status { padding: .6rem 1.2rem; }
  header { display: flex; align-items: baseline; gap: 1rem; border-bottom: 1px solid var(--line); }
  h1 { font-size: 1.15rem; margin: 0; color: var(--sun); letter-spacing: .02em; }
  header nav { color: var(--faint); }
  header button { all: unset; cursor: pointer; color: var(--ink); text-decoration: underline dotted; margin-left: .7rem; }
  header button:focus-visible { outline: 2px solid var(--sun); }
  form { padding-bottom: 0; }
  textarea { width: 100%; height: 8.5rem; resize: vertical; padding: .6rem .8rem; border: 1px solid var(--line); border-radius: 6px;
    background: var(--paper); color: inherit; font: 14px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; tab-size: 2; }
  textarea:focus { outline: 2px solid var(--sun); outline-offset: -1px; }
  form p { display: flex; align-items: center; gap: .8rem; margin: .5rem 0 0; color: var(--faint); }
  #run { padding: .35rem 1.2rem; border: 0; border-radius: 6px; background: var(--sun); color: light-dark(#fff, #16181c);
    font: inherit; font-weight: 600; cursor: pointer; }
  .busy #run { opacity: .5; }
  kbd { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; border: 1px solid var(--line); border-radius: 4px; padding: 0 .3rem; }
  #status { min-height: 2.6rem; white-space: pre-wrap; color: var(--faint); }
  #status.error { color: var(--fault); }
  main { flex: 1; overflow: auto; margin: 0 1.2rem 1.2rem; border-top: 1px solid var(--line); }
  table { border-collapse: collapse; font: 13px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
  th, td { padding: .25rem .9rem .25rem .5rem; text-align: left; white-space: pre; border-bottom: 1px solid var(--line);
    max-width: 40rem; overflow: hidden; text-overflow: ellipsis; }
  th { position: sticky; top: 0; background: var(--ground); box-shadow: inset 0 -1px var(--line); }
  th small { display: block; font-weight: normal; color: var(--faint); }
  .number { text-align: right; }
  td.null { color: var(--faint); font-style: italic; }
  tbody tr:hover { background: var(--paper); }
</style>
</head>
<body>
<header>
  <h1>Sundial</h1>
  <nav>Try<button type="button">SELECT * FROM tables()</button><button type="button">SELECT * FROM read_parquet('trades.parquet') LIMIT 100</button></nav>
</header>
<form id="form">
  <textarea id="query" aria-label="SQL" spellcheck="false" autofocus>SELECT * FROM tables()</textarea>
  <p><button id="run">Run</button> <span><kbd>Ctrl</kbd> + <kbd>Enter</kbd> runs the selected text, or all of it</span></p>
</form>
<div id="status" role="status"></div>
<main><table id="rows"></table></main>
<script>
const SHOWN_MAX = 1000;
const NUMBERS = /^(BYTE|SHORT|INT|LONG|FLOAT|DOUBLE|DECIMAL.*|LONG256)$/;
const query = document.getElementById("query"), status = document.getElementById("status"), rows = document.getElementById("rows");
const counted = (count) => count.toLocaleString("en") + (count === 1 ? " row" : " rows");

function addCell(row, tag, type, text) {
  const cell = document.createElement(tag);
  cell.textContent = text ?? "null";
  if (text === null) cell.className = "null";
  if (NUMBERS.test(type)) cell.classList.add("number");
  row.append(cell);
  return cell;
}

function showRows({ columns, dataset }) {
  const head = rows.createTHead().insertRow();
  for (const { name, type } of columns) {
    const small = document.createElement("small");
    small.textContent = type;
    addCell(head, "th", type, name).append(small);
  }
  const body = rows.createTBody();
  for (const values of dataset) {
    const row = body.insertRow();
    values.forEach((value, at) => {
      const text = value !== null && typeof value === "object" ? JSON.stringify(value) : value;
      addCell(row, "td", columns[at].type, text === null ? null : String(text));
    });
  }
}

/** The message with its line and column, and the word at fault selected. */
function showError(message, position, textStart) {
  status.className = "error";
  status.textContent = message;
  if (!Number.isInteger(position)) return;
  const at = textStart + position;
  const before = query.value.slice(0, at).split("\\n");
  status.textContent += "\\nat line " + before.length + ", column " + (before.at(-1).length + 1);
  const word = /^(\\w+|[^\\s\\w]|)/.exec(query.value.slice(at))[0];
  query.focus();
  query.setSelectionRange(at, at + word.length);
}

async function run(event) {
  event?.preventDefault();
  if (document.body.classList.contains("busy")) return;
  const { selectionStart, selectionEnd, value } = query;
  const isPart = selectionEnd > selectionStart && value.slice(selectionStart, selectionEnd).trim().includes(" ");
  const textStart = isPart ? selectionStart : 0;
  const text = isPart ? value.slice(selectionStart, selectionEnd) : value;
  rows.replaceChildren();
  status.className = "";
  status.textContent = "running …";
  document.body.classList.add("busy");
  const started = performance.now();
  try {
    const parameters = new URLSearchParams({ src: "con", limit: SHOWN_MAX, count: true, timings: true, query: text });
    const reply = await fetch("/exec?" + parameters, { headers: { "x-sundial-page": "1" } });
    const body = await reply.text();
    const isJson = reply.headers.get("content-type")?.startsWith("application/json");
    const answer = isJson ? JSON.parse(body) : { error: body.trim() || reply.status + " " + reply.statusText };
    const took = (performance.now() - started).toFixed(1) + " ms";
    if (answer.columns) showRows(answer);
    if (answer.error) showError(answer.error, answer.position ?? answer.errorPos, textStart);
    else if (answer.columns) {
      const { compiler, execute } = answer.timings ?? {};
      const inside = compiler === undefined ? "" : " (compile " + (compiler / 1e6).toFixed(2) + ", execute " + (execute / 1e6).toFixed(2) + ")";
      const more = answer.count > SHOWN_MAX ? ", the first " + SHOWN_MAX.toLocaleString("en") + " are shown" : "";
      status.textContent = counted(answer.count) + more + " · " + took + inside;
    } else {
      const changed = answer.updated ?? answer.inserted;
      status.textContent = "OK · " + (changed === undefined ? "" : counted(changed) + " · ") + took;
    }
  } catch (error) {
    showError(error instanceof TypeError ? "The server cannot be reached" : String(error));
  }
  document.body.classList.remove("busy");
}

document.getElementById("form").addEventListener("submit", run);
query.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event); });
document.querySelector("nav").addEventListener("click", ({ target }) => {
  if (target.tagName !== "BUTTON") return;
  query.value = target.textContent;
  query.focus();
  run();
});
query.setSelectionRange(query.value.length, query.value.length);
</script>
</body>
</html>
`;
