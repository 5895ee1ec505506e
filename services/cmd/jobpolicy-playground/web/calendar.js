'use strict';

// The calendar of a CronJob. All text goes in as text, never as HTML.

function el(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// when writes a time such as 2026-03-29T03:30:00+02:00 as people do.
function when(text) {
  const [day, rest] = text.split('T');
  const weekday = new Date(day + 'T00:00:00Z').toLocaleDateString('en', { weekday: 'short', timeZone: 'UTC' });
  const offset = rest.endsWith('Z') ? 'UTC' : 'UTC' + rest.slice(8);
  return `${weekday} ${day} ${rest.slice(0, rest[6] + rest[7] === '00' ? 5 : 8)} ${offset}`;
}

function drawCalendar(calendar) {
  const about = document.getElementById('calendar-about');
  about.textContent = `${calendar.schedule} in ${calendar.zone}` + (calendar.suspend ? '; suspended: none of these runs starts while spec.suspend is true' : '');
  const missed = document.getElementById('calendar-missed');
  missed.hidden = !calendar.missed;
  missed.textContent = calendar.missed ?? '';
  const next = (calendar.next ?? []).map((t) => {
    const item = el('li', undefined, t.clockChange ? 'change' : 'run');
    const at = el('time', when(t.at));
    at.dateTime = t.at;
    item.append(at);
    const more = t.clockChange || t.note;
    if (more) item.append(el('span', more));
    return item;
  });
  if (next.length === 0) next.push(el('li', 'no run within five years'));
  document.getElementById('calendar-next').replaceChildren(...next);
  document.getElementById('calendar-months').replaceChildren(...calendar.months.map(drawMonth));
}

function drawMonth(month) {
  const table = el('table');
  table.append(el('caption', month.title));
  const head = el('tr');
  for (const [short, long] of [['M', 'Monday'], ['T', 'Tuesday'], ['W', 'Wednesday'], ['T', 'Thursday'], ['F', 'Friday'], ['S', 'Saturday'], ['S', 'Sunday']]) {
    const th = el('th', short);
    th.scope = 'col';
    th.abbr = long;
    head.append(th);
  }
  const thead = el('thead');
  thead.append(head);
  const body = el('tbody');
  let row = el('tr');
  for (let i = 0; i < month.first; i++) row.append(el('td'));
  month.days.forEach((day, i) => {
    row.append(drawDay(day, i + 1));
    if ((month.first + i) % 7 === 6) {
      body.append(row);
      row = el('tr');
    }
  });
  if (row.children.length > 0) body.append(row);
  table.append(thead, body);
  return table;
}

function drawDay(day, number) {
  const td = el('td');
  td.append(el('span', String(number)));
  const words = [];
  const many = (n) => (n > 100 ? 'more than 100' : n); // above, the engine estimates
  if (day.runs) words.push(day.runs === 1 ? '1 run' : `${many(day.runs)} runs`);
  if (day.missed) words.push(`${many(day.missed)} missed`);
  if (day.change) words.push(day.change);
  if (day.today) words.push('now');
  if (words.length > 0) {
    td.title = words.join('; ');
    td.append(el('span', ': ' + words.join('; '), 'unseen'));
  }
  if (day.runs) td.classList.add('runs');
  if (day.missed) td.classList.add('missed');
  if (day.change) td.classList.add('change');
  if (day.today) td.classList.add('today');
  return td;
}
