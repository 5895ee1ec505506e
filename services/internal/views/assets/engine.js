import { el, number, tile } from './dom.js';

// engineView is the health of engine and queues.
export function engineView(main, model) {
  const root = el('div', { class: 'engine' });
  main.append(root);
  let drawn = '';

  function update() {
    const h = model.health;
    if (!h) return;
    const key = JSON.stringify(h);
    if (key === drawn) return;
    drawn = key;
    const most = Math.max(...h.rules.map((r) => r.perSecond), 1e-9);
    root.replaceChildren(
      el('h1', {}, 'Engine'),
      el('dl', { class: 'tiles' },
        tile('Decisions a second', number(h.perSecond)), tile('Decisions in all', number(h.decisions)),
        tile('Mean answer', h.meanSeconds ? `${number(1000 * h.meanSeconds)} ms` : '–'),
        tile('Failed calls', number(h.errors.reduce((n, e) => n + e.total, 0)))),
      el('h2', {}, 'Ready?'),
      table(['Check', 'Result'], h.checks.map((c) => [c.name, el('span', { class: 'state ' + (c.ok ? 'good' : 'bad') }, c.text)])),
      el('h2', {}, 'Decisions, by the rule that reached a verdict'),
      table(['Rule', 'A second', 'In all', ''], h.rules.map((r) => [r.rule === 'none' ? 'none: the Job goes on' : r.rule, number(r.perSecond), number(r.total), bar(r.perSecond / most)]), [1, 2]),
      el('h2', {}, 'Work queues'),
      table(['Queue', 'Due now', 'Added a second'], h.queues.map((q) => [q.name, number(q.depth), number(q.perSecond)]), [1, 2]),
      ...(h.errors.some((e) => e.total) ? [el('h2', {}, 'Calls of the engine that failed'), table(['gRPC code', 'In all'], h.errors.map((e) => [e.code, number(e.total)]), [1])] : []));
  }

  function bar(share) {
    const b = el('span', { class: 'ratebar', 'aria-hidden': 'true' });
    b.style.width = 100 * share + '%';
    return b;
  }

  function table(titles, rows, numbers = []) {
    const kind = (i) => (numbers.includes(i) ? 'num' : titles[i] === '' ? 'ratecell' : null);
    return el('table', {},
      el('thead', {}, el('tr', {}, ...titles.map((t, i) => (t === '' ? el('td', {}) : el('th', { scope: 'col', class: kind(i) }, t))))),
      el('tbody', {}, ...rows.map((r) => el('tr', {}, ...r.map((cell, i) => el('td', { class: kind(i) }, cell))))));
  }

  return { title: 'Engine', update };
}
