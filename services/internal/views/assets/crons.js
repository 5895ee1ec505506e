import { el, span } from './dom.js';

const weekday = new Intl.DateTimeFormat('en', { weekday: 'short', day: 'numeric', month: 'short', timeZone: 'UTC' });

// cronsView is a calendar: a row for each CronJob, a column for each day.
export function cronsView(main, model) {
  const count = el('p', { class: 'count', role: 'status' });
  const head = el('tr', {});
  const body = el('tbody', {});
  const empty = el('p', { class: 'empty', hidden: true }, 'There is no CronJob that this executor acts on.');
  const table = el('table', { class: 'calendar', 'aria-label': 'Runs of CronJobs in the next days' }, el('thead', {}, head), body);
  const search = el('input', { type: 'search', id: 'cq', placeholder: 'part of a name', oninput: update });
  main.append(
    el('h1', { class: 'skip' }, 'CronJobs'),
    el('div', { class: 'filters', role: 'search' }, el('label', { for: 'cq' }, 'Name', search), count),
    el('div', { class: 'wide' }, table, empty, el('p', { class: 'soft' }, 'Times are those of each CronJob’s own time zone. The days begin with today, by UTC.')));
  const drawn = new Map(); // by UID: the row and what it was made of

  function update() {
    const days = model.days.join();
    if (head.dataset.days !== days) {
      head.dataset.days = days;
      head.replaceChildren(el('th', { scope: 'col' }, 'CronJob'), el('th', { scope: 'col' }, 'Next run'), ...model.days.map((d) => el('th', { scope: 'col' }, weekday.format(new Date(d + 'T00:00:00Z')))));
    }
    const q = search.value.toLowerCase();
    const list = [...model.crons.values()].filter((c) => (c.namespace + '/' + c.name).toLowerCase().includes(q))
      .sort((a, b) => (a.namespace + '/' + a.name < b.namespace + '/' + b.name ? -1 : 1));
    const rows = list.map((c) => {
      const known = drawn.get(c.uid);
      const next = nextText(c);
      if (known && known.of === c) {
        if (known.next.firstChild.textContent !== next) known.next.firstChild.textContent = next;
        return known.row;
      }
      const made = row(c, next);
      drawn.set(c.uid, made);
      return made.row;
    });
    if (rows.length !== body.children.length || rows.some((r, i) => body.children[i] !== r)) body.replaceChildren(...rows);
    const text = `${list.length.toLocaleString('en-US')} CronJobs`;
    if (count.textContent !== text) count.textContent = text;
    table.hidden = list.length === 0;
    empty.hidden = list.length > 0;
  }

  function nextText(c) {
    if (c.suspended) return 'suspended';
    if (!c.nextSchedule) return '–';
    const seconds = (Date.parse(c.nextSchedule) - model.now) / 1000;
    return seconds > 0 ? 'in ' + span(seconds) : 'due';
  }

  function row(c, text) {
    const next = el('td', {}, el('p', {}, text), c.nextSchedule && !c.suspended ? null : el('p', { class: 'soft' }, c.reason), c.active ? el('p', {}, `active: ${c.active}`) : null);
    const cells = c.days ? c.days.map(day) : model.days.map(() => el('td', { class: 'day' }));
    return { of: c, next, row: el('tr', {}, el('th', { scope: 'row' }, `${c.namespace}/${c.name}`, el('p', { class: 'mono' }, c.schedule), el('p', {}, c.timeZone), c.options ? el('p', {}, 'Options of ' + c.options) : null), next, ...cells) };
  }

  function day(d) {
    const first = d.first || [];
    const shown = first.filter((t) => !t.change).length;
    return el('td', { class: 'day' }, ...first.map((t) => el('span', { class: t.change ? 'change' : null, title: t.note }, t.change ? '⚠ ' + t.note : t.at + (t.note ? ' *' : ''))),
      d.runs > shown ? el('span', { class: 'soft' }, shown ? `and ${(d.runs - shown).toLocaleString('en-US')} more` : `${d.runs} runs`) : null);
  }

  return { title: 'CronJobs', update };
}
