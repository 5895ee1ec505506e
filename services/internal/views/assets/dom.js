// Every text goes into the page as text, never as markup.

// el makes an element. Properties are attributes; children are elements or texts.
export function el(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) e.addEventListener(key.slice(2), value);
    else e.setAttribute(key, value === true ? '' : value);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined && c !== ''));
  return e;
}

// setText changes a text only if it differs: a reader who selects it keeps the selection.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

const kinds = {
  Complete: 'good', Completing: 'good', Failed: 'bad', Failing: 'bad', Running: 'run', Starting: 'run',
  BackingOff: 'warn', Blocked: 'warn', Stuck: 'warn', Waiting: 'warn', Unmanaged: 'warn',
};

// stateClass is how a state looks. Its word is always beside it: colour alone says nothing.
export function stateClass(state) { return 'state ' + (kinds[state] || 'idle'); }

// span writes seconds as a person says them.
export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return s + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm' + (s < 600 && s % 60 ? (s % 60) + 's' : '');
  if (s < 86400) return Math.floor(s / 3600) + 'h' + (s < 36000 && Math.floor(s / 60) % 60 ? Math.floor(s / 60) % 60 + 'm' : '');
  return Math.floor(s / 86400) + 'd';
}

export function number(n) { return n.toLocaleString('en-US', { maximumFractionDigits: n < 10 ? 2 : n < 100 ? 1 : 0 }); }

// tile is one number with its name.
export function tile(name, value) { return el('div', {}, el('dt', {}, name), el('dd', {}, value)); }
