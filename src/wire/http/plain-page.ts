/** A page with a query box: what `/` shows where the console is not built in. */
export const PLAIN_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sundial</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; }
  textarea { width: 100%; height: 8rem; font: 14px/1.4 ui-monospace, monospace; box-sizing: border-box; }
  table { border-collapse: collapse; font: 13px ui-monospace, monospace; margin-top: 1rem; }
  th, td { border: 1px solid #8886; padding: .2rem .5rem; text-align: left; white-space: pre; }
  th small { font-weight: normal; opacity: .6; display: block; }
  td.null { opacity: .5; }
  #status { margin-top: .5rem; }
  #status.error { color: #d33; }
</style>
</head>
<body>
<h1>Sundial</h1>
<form id="form">
  <textarea id="query" aria-label="SQL" spellcheck="false">SELECT * FROM tables()</textarea>
  <p><button>Run</button> <small>Ctrl+Enter; the first 1,000 rows are shown</small></p>
</form>
<div id="status" role="status"></div>
<table id="rows"></table>
<script>
const query = document.getElementById("query"), status = document.getElementById("status"), rows = document.getElementById("rows");
function cell(row, tag, text, isNull) {
  const element = document.createElement(tag);
  element.textContent = isNull ? "null" : text;
  if (isNull) element.className = "null";
  row.append(element);
  return element;
}
async function run(event) {
  event?.preventDefault();
  rows.replaceChildren();
  status.className = "";
  status.textContent = "…";
  const started = performance.now();
  try {
    const reply = await fetch("/exec?src=con&limit=1000&count=true&query=" + encodeURIComponent(query.value));
    const text = await reply.text();
    const answer = reply.headers.get("content-type")?.startsWith("application/json") ? JSON.parse(text) : { error: text };
    const took = (performance.now() - started).toFixed(1) + " ms";
    if (answer.columns) {
      const head = rows.createTHead().insertRow();
      for (const column of answer.columns) {
        const type = document.createElement("small");
        type.textContent = column.type;
        cell(head, "th", column.name).append(type);
      }
      const body = rows.createTBody();
      for (const values of answer.dataset) {
        const row = body.insertRow();
        for (const value of values) cell(row, "td", typeof value === "object" ? JSON.stringify(value) : String(value), value === null);
      }
    }
    if (answer.error) {
      status.className = "error";
      status.textContent = answer.error + (answer.position ? " (at " + answer.position + ")" : "");
      if (Number.isInteger(answer.position)) query.setSelectionRange(answer.position, answer.position);
    } else status.textContent = answer.columns ? answer.count + " rows, " + took : JSON.stringify(answer) + ", " + took;
  } catch (error) {
    status.className = "error";
    status.textContent = String(error);
  }
}
document.getElementById("form").addEventListener("submit", run);
query.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event); });
</script>
</body>
</html>
`;
