/** Building elements. Text only ever becomes text nodes, so nothing an app or a person sends can become markup. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (key === 'class') node.className = value;
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat().filter((c) => c !== undefined && c !== null && c !== false && c !== ''));
  return node;
}

export const $ = (id) => document.getElementById(id);

let statusTimer;
/** A short line at the bottom, read out by screen readers. */
export function say(text) {
  $('status').textContent = text;
  clearTimeout(statusTimer);
  statusTimer = setTimeout(() => {
    $('status').textContent = '';
  }, 6000);
}

export async function post(path, body) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({ ok: false, error: `HTTP ${response.status}` }));
  if (!answer.ok) throw new Error(answer.error);
  return answer.result;
}

/** Only addresses a reader can follow: no `javascript:`. */
export function safeHref(url) {
  return /^(https?:|mailto:)/i.test(url) ? url : undefined;
}

export function sizeOf(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
