import { el, setText, span, stateClass } from './dom.js';

const rowHeight = 34; // as in page.css
const around = 8; // rows drawn above and below those that are seen

// The columns by which one can sort.
const orders = {
  name: (a, b) => compare(a.ns, b.ns) || compare(a.name, b.name),
  state: (a, b) => compare(a.state, b.state),
  failed: (a, b) => b.failed - a.failed,
  age: (a, b) => compare(b.created, a.created),
};

function compare(a, b) { return a < b ? -1 : a > b ? 1 : 0; }

// jobsView is the list of Jobs. Only the rows that are seen are in the page, however many
// there are.
export function jobsView(main, model, at) {
  main.className = 'fixed';
  const filter = { q: '', ns: '', state: '', wait: '', sort: 'name', down: '' };
  let list = [];
  let active = 0; // the row that the arrow keys move from

  const search = el('input', { type: 'search', id: 'q', placeholder: 'part of a name', oninput: () => set('q', search.value) });
  const namespaces = el('select', { id: 'ns', onchange: () => set('ns', namespaces.value) });
  const waits = el('select', { id: 'wait', onchange: () => set('wait', waits.value) });
  const count = el('p', { class: 'count', id: 'count', role: 'status' });
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'State' });
  const head = el('tr', { 'aria-rowindex': 1 });
  const above = el('td', { colspan: 7 });
  const below = el('td', { colspan: 7 });
  const body = el('tbody', {}, el('tr', { class: 'space', 'aria-hidden': 'true' }, above), el('tr', { class: 'space', 'aria-hidden': 'true' }, below));
  const table = el('table', { class: 'virtual', 'aria-label': 'Jobs' },
    el('colgroup', {}, ...['name', 'state', 'pods', 'done', 'failed', 'reason', 'age'].map((c) => el('col', { class: 'c-' + c }))),
    el('thead', {}, head), body);
  const scroll = el('div', { class: 'scroll', onscroll: draw, onkeydown: move }, table);
  const empty = el('p', { class: 'empty', hidden: true });
  main.append(
    el('h1', { class: 'skip' }, 'Jobs'),
    el('div', { class: 'filters', role: 'search' },
      el('label', { for: 'q' }, 'Name', search), el('label', { for: 'ns' }, 'Namespace', namespaces),
      el('label', { for: 'wait' }, 'Waits for', waits), count),
    chips, scroll, empty);

  const headers = new Map();
  for (const [key, title, number] of [['name', 'Job'], ['state', 'State'], ['', 'Active / ready', true], ['', 'Succeeded'], ['failed', 'Failed', true], ['', 'Why'], ['age', 'Age', true]]) {
    const th = el('th', { scope: 'col', class: number ? 'num' : null },
      key ? el('button', { type: 'button', onclick: () => sortBy(key) }, title) : title);
    if (key) headers.set(key, th);
    head.append(th);
  }

  function sortBy(key) {
    filter.down = filter.sort === key && !filter.down ? '1' : '';
    set('sort', key);
  }

  // set changes the filter; the address keeps it, so that it can be shared.
  function set(key, value) {
    filter[key] = value;
    const query = new URLSearchParams();
    for (const [k, v] of Object.entries(filter)) if (v && !(k === 'sort' && v === 'name')) query.set(k, v);
    const text = query.toString();
    model.list = '#jobs' + (text ? '?' + text : '');
    history.replaceState(null, '', model.list);
    select();
  }

  function route(query) {
    for (const key of Object.keys(filter)) filter[key] = query.get(key) || '';
    if (!orders[filter.sort]) filter.sort = 'name';
    search.value = filter.q;
    model.list = location.hash; // the way back from a Job
    if (model.known) select();
  }

  // select finds the Jobs that the filter lets through.
  function select() {
    const q = filter.q.toLowerCase();
    const states = new Map();
    const inNamespaces = new Set();
    const kinds = new Set();
    list = [];
    for (const j of model.jobs.values()) {
      inNamespaces.add(j.ns);
      for (const w of j.waits || []) kinds.add(w);
      if (filter.ns && j.ns !== filter.ns) continue;
      if (filter.wait && !(j.waits || []).includes(filter.wait)) continue;
      if (q && !(j.ns + '/' + j.name).toLowerCase().includes(q)) continue;
      states.set(j.state, (states.get(j.state) || 0) + 1);
      if (!filter.state || j.state === filter.state) list.push(j);
    }
    const order = orders[filter.sort];
    list.sort((a, b) => (filter.down ? -order(a, b) : order(a, b)) || orders.name(a, b) || compare(a.uid, b.uid));
    options(namespaces, 'all', inNamespaces, filter.ns);
    options(waits, 'anything or nothing', kinds, filter.wait);
    drawChips(states);
    for (const [key, th] of headers) {
      if (key === filter.sort) th.setAttribute('aria-sort', filter.down ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    }
    const all = model.jobs.size;
    setText(count, list.length === all ? `${all.toLocaleString('en-US')} Jobs` : `${list.length.toLocaleString('en-US')} of ${all.toLocaleString('en-US')} Jobs`);
    scroll.hidden = list.length === 0;
    empty.hidden = list.length > 0;
    setText(empty, all === 0 ? 'There is no Job that this executor has decided on.' : 'No Job matches the filter.');
    draw();
  }

  function options(select, every, values, chosen) {
    if (chosen) values.add(chosen);
    const wanted = ['', ...[...values].sort()];
    if (wanted.length !== select.length || wanted.some((v, i) => select.options[i].value !== v)) {
      select.replaceChildren(...wanted.map((v) => el('option', { value: v }, v || every)));
    }
    if (select.value !== chosen) select.value = chosen;
  }

  function drawChips(states) {
    if (filter.state && !states.has(filter.state)) states.set(filter.state, 0);
    const names = [...states.keys()].sort();
    const known = [...chips.children];
    if (known.length !== names.length || known.some((c, i) => c.dataset.state !== names[i])) {
      const focused = chips.contains(document.activeElement) ? document.activeElement.dataset.state : null;
      chips.replaceChildren(...names.map((s) => el('button', {
        type: 'button', 'data-state': s, onclick: () => set('state', filter.state === s ? '' : s),
      }, el('span', { class: stateClass(s) }, s), el('b', {}))));
      for (const c of chips.children) if (c.dataset.state === focused) c.focus();
    }
    for (const c of chips.children) {
      c.setAttribute('aria-pressed', String(c.dataset.state === filter.state));
      setText(c.lastChild, states.get(c.dataset.state).toLocaleString('en-US'));
    }
  }

  // draw puts the rows that are seen into the page, in the elements that are there already.
  function draw() {
    active = Math.min(active, Math.max(0, list.length - 1));
    const first = Math.max(0, Math.floor(scroll.scrollTop / rowHeight) - around);
    const last = Math.min(list.length, Math.ceil((scroll.scrollTop + scroll.clientHeight) / rowHeight) + around);
    table.setAttribute('aria-rowcount', list.length + 1);
    above.style.height = first * rowHeight + 'px';
    below.style.height = (list.length - last) * rowHeight + 'px';
    const rows = body.children;
    while (rows.length - 2 < last - first) body.insertBefore(newRow(), body.lastChild);
    while (rows.length - 2 > last - first) rows[rows.length - 2].remove();
    for (let i = first; i < last; i++) fill(rows[i - first + 1], list[i], i);
  }

  function newRow() {
    return el('tr', { class: 'row' },
      el('th', { scope: 'row' }, el('a', {}, el('span', { class: 'ns' }), el('span', {}))),
      el('td', {}, el('span', {})), el('td', { class: 'num' }),
      el('td', {}, el('div', { class: 'done' }, el('span', { class: 'meter', 'aria-hidden': 'true' }, el('i', {})), el('span', { class: 'num' }))),
      el('td', { class: 'num' }), el('td', {}), el('td', { class: 'num soft' }));
  }

  function fill(tr, j, i) {
    const [name, state, pods, done, failed, reason, age] = tr.children;
    const link = name.firstChild;
    tr.setAttribute('aria-rowindex', i + 2);
    link.setAttribute('href', '#job/' + encodeURIComponent(j.uid));
    link.setAttribute('tabindex', i === active ? '0' : '-1');
    setText(link.firstChild, j.ns + '/');
    setText(link.lastChild, j.name);
    name.title = j.ns + '/' + j.name;
    state.firstChild.className = stateClass(j.state);
    setText(state.firstChild, j.state);
    setText(pods, `${j.active} / ${j.ready}`);
    const wanted = j.completions;
    done.firstChild.firstChild.hidden = !wanted;
    if (wanted) done.firstChild.firstChild.firstChild.style.width = Math.min(100, 100 * j.succeeded / wanted) + '%';
    setText(done.firstChild.lastChild, wanted ? `${j.succeeded} of ${wanted}` : String(j.succeeded));
    setText(failed, String(j.failed));
    setText(reason, j.reason);
    reason.title = j.reason;
    setText(age, span((model.now - Date.parse(j.created)) / 1000));
  }

  // move moves from row to row with the keys that people expect.
  function move(event) {
    const page = Math.max(1, Math.floor(scroll.clientHeight / rowHeight) - 2);
    const to = { ArrowDown: active + 1, ArrowUp: active - 1, PageDown: active + page, PageUp: active - page, Home: 0, End: list.length - 1 }[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey || !body.contains(event.target)) return;
    event.preventDefault();
    active = Math.max(0, Math.min(list.length - 1, to));
    const top = active * rowHeight;
    const seen = scroll.clientHeight - 2 * rowHeight;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    else if (top > scroll.scrollTop + seen) scroll.scrollTop = top - seen;
    draw();
    body.querySelector('a[tabindex="0"]').focus({ preventScroll: true });
  }

  // A row that is clicked or reached by Tab is the one to move from.
  body.addEventListener('focusin', (event) => {
    const row = event.target.closest('tr.row');
    if (row) active = Number(row.getAttribute('aria-rowindex')) - 2;
  });
  const resized = new ResizeObserver(draw);
  resized.observe(scroll);
  route(at.query);
  return { title: 'Jobs', route, update: () => (model.changed || list.length === 0 ? select() : draw()), close: () => resized.disconnect() };
}
