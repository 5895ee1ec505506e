import { jobsView } from './jobs.js';
import { lifeView } from './life.js';
import { cronsView } from './crons.js';
import { engineView } from './engine.js';
import { number } from './dom.js';

// The model is what the last events said.
const model = { jobs: new Map(), crons: new Map(), days: [], health: null, now: Date.now(), known: false };

const views = { jobs: jobsView, job: lifeView, cronjobs: cronsView, engine: engineView };
const main = document.getElementById('main');
const live = document.getElementById('live');
let view = null;

// The part of the address behind # says what is shown: #jobs?state=Failed, #job/UID.
function route() {
  const [path, query] = location.hash.slice(1).split('?');
  const [name, argument] = path.split('/');
  return { name: views[name] ? name : 'jobs', argument: decodeURIComponent(argument || ''), query: new URLSearchParams(query || '') };
}

let shown = '';

function show() {
  if (location.hash === '#main') return; // the link that skips to the content
  const at = route();
  const key = at.name + '/' + at.argument;
  if (view && key === shown) {
    if (view.route) view.route(at.query);
    return;
  }
  if (view && view.close) view.close();
  const first = shown === '';
  shown = key;
  main.replaceChildren();
  main.className = '';
  view = views[at.name](main, model, at);
  for (const a of document.querySelectorAll('nav a')) {
    const own = a.getAttribute('href').slice(1);
    if (own === at.name || (own === 'jobs' && at.name === 'job')) a.setAttribute('aria-current', 'page');
    else a.removeAttribute('aria-current');
  }
  document.title = view.title + ' – jobpolicy';
  if (!first) main.focus({ preventScroll: true });
  if (model.known) view.update();
}

function take(m) {
  if (m.all) {
    model.jobs.clear();
    model.crons.clear();
  }
  for (const j of m.jobs || []) model.jobs.set(j.uid, j);
  for (const uid of m.jobsGone || []) model.jobs.delete(uid);
  for (const c of m.crons || []) model.crons.set(c.uid, c);
  for (const uid of m.cronsGone || []) model.crons.delete(uid);
  model.changed = Boolean(m.all || m.jobs || m.jobsGone);
  model.days = m.days;
  model.now = Date.parse(m.now);
  if (m.health) model.health = m.health;
  model.known = true;
}

function connect() {
  const events = new EventSource('events');
  events.onmessage = (event) => {
    take(JSON.parse(event.data));
    const health = model.health;
    say(health && health.checks.some((c) => !c.ok) ? 'live, not ready' : 'live', true, health ? `, ${number(health.perSecond)} decisions/s` : '');
    view.update();
  };
  events.onerror = () => {
    say('no connection, trying again', false, '');
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

// Only a change of state is announced, not each number.
let said = '';
function say(state, on, more) {
  live.dataset.on = String(on);
  live.setAttribute('aria-live', state === said ? 'off' : 'polite');
  said = state;
  if (live.textContent !== state + more) live.textContent = state + more;
}

addEventListener('hashchange', show);
show();
connect();
