import { el, setText, stateClass, tile } from './dom.js';

// lifeView is one Job: what goes on, what it waits for, and its pods over time.
export function lifeView(main, model, at) {
  const root = el('article', { class: 'life' }, el('p', { class: 'soft' }, 'Loading…'));
  main.append(el('p', {}, el('a', { href: model.list || '#jobs' }, '← Jobs')), root);
  let parts = null;
  const view = { title: 'Job', update: () => {}, close: () => events.close() };
  const events = new EventSource('job?uid=' + encodeURIComponent(at.argument));
  events.onmessage = (event) => take(JSON.parse(event.data));

  function take(life) {
    if (life.gone) {
      parts = null;
      root.replaceChildren(el('h1', {}, 'There is no such Job any more'), el('p', { class: 'soft' }, 'It was deleted, or this executor has not decided on it.'));
      return;
    }
    if (!parts) build(life);
    fill(life);
  }

  function build(life) {
    parts = {};
    const part = (name, e) => (parts[name] = e);
    root.replaceChildren(
      el('div', { class: 'top' }, part('name', el('h1', {})), part('state', el('span', {}))),
      part('headline', el('p', { class: 'headline' })),
      part('options', el('p', { class: 'soft', hidden: true })),
      part('tiles', el('dl', { class: 'tiles' })),
      el('div', { class: 'columns' },
        section('waits', 'Waits for'), section('change', 'What you can do'), section('ends', 'How it may end'), section('pods', 'Pods to look at'), section('notes', 'Good to know')),
      part('cells', el('section', { hidden: true })),
      part('life', el('section', {})),
      part('marks', el('section', {})),
      part('rules', el('section', {})));
    document.title = life.report.namespace + '/' + life.report.name + ' – jobpolicy';
  }

  function section(name, title) {
    const list = el('ul', {});
    parts[name] = { list, section: el('section', {}, el('h2', {}, title), list) };
    return parts[name].section;
  }

  function fill(life) {
    const r = life.report;
    setText(parts.name, r.namespace + '/' + r.name);
    parts.state.className = stateClass(r.state);
    setText(parts.state, r.state);
    setText(parts.headline, r.headline);
    parts.options.hidden = !life.options;
    setText(parts.options, life.options ? 'Options of ' + life.options : '');
    const c = r.counts;
    same(parts.tiles, [
      ['Active', c.active], ['Ready', c.ready], ['Ending', c.terminating],
      ['Succeeded', c.completions === undefined ? c.succeeded : `${c.succeeded} of ${c.completions}`], ['Failed', c.failed], ['Retries', r.retries || '–'],
    ], (t) => tile(t[0], String(t[1])));
    items('waits', (r.waits || []).map((w) => w.for + (w.until ? `, until ${clock(w.until)}` : '')));
    items('change', r.change || []);
    items('ends', r.ends || []);
    items('pods', (r.pods || []).map((p) => `${p.pod}: ${p.why}${p.change ? ` – ${p.change}` : ''}`));
    items('notes', (r.notes || []).map((n) => n.text));
    cells(life);
    bars(life);
    same(parts.marks, life.life.marks || [], null, (marks) => [el('h2', {}, 'What happened'), el('table', {}, el('thead', { class: 'skip' }, el('tr', {}, el('th', { scope: 'col' }, 'After'), el('th', { scope: 'col' }, 'What'))),
      el('tbody', {}, ...marks.map((m) => el('tr', {}, el('td', { class: 'when' }, m.at), el('td', { class: 'text' }, m.text)))))]);
    const rules = [...(life.ended ? [life.ended] : []), ...(r.rules || []).filter((x) => !life.ended || x.name !== life.ended.name)];
    same(parts.rules, rules, null, (list) => (list.length === 0 ? [] : [el('h2', {}, 'The engine’s rules'), el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Rule'), el('th', { scope: 'col' }, 'Answer'))),
      el('tbody', {}, ...list.map((x) => el('tr', {}, el('td', { class: 'mono' }, x.name), el('td', { class: 'text' }, (x.decides ? 'decides: ' : '') + x.answer)))))]));
  }

  function clock(time) { return new Date(time).toLocaleTimeString([], { hour12: false }); }

  function items(name, texts) {
    const { list, section: s } = parts[name];
    s.hidden = texts.length === 0;
    same(list, texts, (text) => el('li', {}, text));
  }

  // same draws a part again only if its data differ, so that focus and selection stay.
  function same(e, data, each, whole) {
    const key = JSON.stringify(data);
    if (e.dataset.drawn === key) return;
    e.dataset.drawn = key;
    e.replaceChildren(...(whole ? whole(data) : data.map(each)));
  }

  // cells draws ranges of indexes; each is filled from below by what became of its indexes.
  function cells(life) {
    const data = life.cells || [];
    parts.cells.hidden = data.length < 2;
    if (parts.cells.hidden) return;
    const open = parts.cells.querySelector('details')?.open;
    same(parts.cells, data, null, () => {
      const wide = data[0].last - data[0].first + 1;
      const sum = (key) => data.reduce((n, c) => n + c[key], 0);
      const text = `succeeded ${sum('succeeded')}, failed ${sum('failed')}, active ${sum('active')}, ending ${sum('terminating')}`;
      return [
        el('h2', {}, wide === 1 ? 'Indexes' : `Indexes, ${wide.toLocaleString('en-US')} in each cell`),
        el('div', { class: 'cells', role: 'img', 'aria-label': 'Indexes: ' + text }, ...data.map(oneCell)),
        legend(['succeeded', 'succeeded'], ['failed', 'failed'], ['run', 'active'], ['wait', 'ending'], ['', 'no pod yet']),
        el('details', { open: open || null }, el('summary', {}, 'As a table'),
          el('table', {}, el('thead', {}, el('tr', {}, ...['Indexes', 'Succeeded', 'Failed', 'Active', 'Ending'].map((h, i) => el('th', { scope: 'col', class: i ? 'num' : null }, h)))),
            el('tbody', {}, ...data.map((c) => el('tr', {}, el('th', { scope: 'row' }, range(c)), ...['succeeded', 'failed', 'active', 'terminating'].map((k) => el('td', { class: 'num' }, String(c[k])))))))),
      ];
    });
  }

  function range(c) { return c.first === c.last ? String(c.first) : `${c.first}–${c.last}`; }

  function oneCell(c) {
    const n = c.last - c.first + 1;
    const e = el('i', { title: `${range(c)}: succeeded ${c.succeeded}, failed ${c.failed}, active ${c.active}, ending ${c.terminating}` });
    for (const [key, kind] of [['succeeded', 'succeeded'], ['failed', 'failed'], ['active', 'run'], ['terminating', 'wait']]) {
      if (!c[key]) continue;
      const b = el('b', { class: kind });
      b.style.height = 100 * c[key] / n + '%';
      e.append(b);
    }
    return e;
  }

  function legend(...kinds) {
    return el('p', { class: 'legend', 'aria-hidden': 'true' }, ...kinds.map(([kind, text]) => el('span', { class: 'l-' + kind }, text)));
  }

  function bars(life) {
    const p = life.life;
    same(parts.life, [p.bars, p.took, life.pods], null, () => {
      if (life.pods === 0) return [el('h2', {}, 'Pods'), el('p', { class: 'soft' }, 'The Job has no pods now.')];
      if (!p.bars) return [el('h2', {}, 'Pods'), el('p', { class: 'soft' }, `${life.pods.toLocaleString('en-US')} pods: too many to draw one by one.`)];
      return [
        el('h2', {}, `Pods, over ${p.took}`),
        el('table', { class: 'bars' },
          el('thead', { class: 'skip' }, el('tr', {}, ...['Pod', 'Life', 'What became of it'].map((h) => el('th', { scope: 'col' }, h)))),
          el('tbody', {}, ...p.bars.map((b) => el('tr', {}, el('th', { scope: 'row' }, b.name), el('td', { class: 'bar' }, el('div', {}, ...b.parts.map(piece))), el('td', { class: 'soft' }, b.text))))),
        legend(['wait', 'not ready yet'], ['run', 'running'], ['succeeded', 'succeeded'], ['failed', 'failed']),
      ];
    });
  }

  function piece(part) {
    const i = el('i', { class: part.class });
    i.style.left = part.left + '%';
    i.style.width = part.width + '%';
    return i;
  }

  return view;
}
