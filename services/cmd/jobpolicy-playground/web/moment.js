'use strict';

// What is shown of one moment of a play. All text goes in as text, never as HTML.

function drawMoment(moment) {
  drawSays(moment.decisions);
  drawRules(moment.decisions);
  const counters = [];
  for (const c of moment.counters) {
    const pair = el('div');
    pair.append(el('dt', c.name), el('dd', c.value || '–'));
    counters.push(pair);
  }
  document.getElementById('counters').replaceChildren(...counters);
  const conditions = moment.conditions.map((c) => {
    const item = el('li', undefined, c.true ? (c.type.startsWith('Fail') ? 'bad' : c.type === 'Suspended' ? 'plain' : 'good') : 'plain');
    item.append(el('strong', c.type + (c.true ? '' : '=False')));
    if (c.reason) item.append(el('span', c.reason));
    if (c.message) item.append(el('span', c.message, 'hint'));
    return item;
  });
  if (conditions.length === 0) conditions.push(el('li', 'none yet', 'hint'));
  document.getElementById('conditions').replaceChildren(...conditions);
}

// drawSays lists the decisions of the moment, and what the last one waits for.
function drawSays(decisions) {
  const items = [];
  let last = '';
  for (const d of decisions) {
    if (d.summary && d.summary !== last) items.push(el('li', d.summary));
    last = d.summary;
  }
  const waits = decisions.length > 0 ? decisions[decisions.length - 1].waits : [];
  for (const w of waits) items.push(el('li', (w.until ? `waits until ${w.until}: ` : 'waits: ') + w.detail, 'notice'));
  document.getElementById('says').replaceChildren(...items);
}

// drawRules shows the rules of the decision that reached a verdict, otherwise those of
// the last one.
function drawRules(decisions) {
  const asked = decisions.filter((d) => d.rules.length > 0);
  const decision = asked.find((d) => d.rules.some((r) => r.decided)) ?? asked[asked.length - 1];
  const items = (decision ? decision.rules : []).map((r) => {
    const item = el('li', undefined, r.decided ? 'decided' : '');
    item.append(el('span', r.name), el('span', (r.decided ? 'decides: ' : '') + r.detail));
    return item;
  });
  document.getElementById('asked').hidden = items.length === 0;
  document.getElementById('rules').replaceChildren(...items);
}
