'use strict';

// The page: reads its fields, plays them, and shows the answer.

const fields = ['manifest', 'script', 'runtime', 'failRate', 'seed', 'now', 'lastRun', 'zone'];
const get = (id) => document.getElementById(id);
const playSeconds = 8;
const maxLog = 400;

let answer = null;
let chart = null;
let current = 0;
let animation = 0;
let timer = 0;
let remembering = 0;

function state() {
  return Object.fromEntries(fields.map((f) => [f, get(f).value]));
}

function fill(values) {
  for (const f of fields) get(f).value = values[f] ?? '';
}

function presetState(p) {
  const today = new Date().toISOString().slice(0, 10);
  return { ...p, manifest: p.manifest ?? manifestText(p.file), now: p.now ?? today };
}

// manifestText is a manifest of deploy/examples.
function manifestText(file) {
  return new TextDecoder().decode(bytesOf(manifests[file]));
}

function announce(text) {
  get('announce').textContent = text;
}

// remember puts the fields and the moment that is shown into the address.
async function remember() {
  clearTimeout(remembering);
  const last = !answer.play || current === answer.play.moments.length - 1;
  history.replaceState(null, '', await toLink({ ...state(), moment: last ? '' : String(current) }));
}

// run plays what the fields say, and shows a moment of it; without one, the last.
async function run(moment) {
  stop();
  const s = state();
  answer = JSON.parse(jobpolicyOpen(JSON.stringify(s)));
  get('cron').hidden = answer.kind !== 'CronJob';
  showProblem(answer.problem);
  showFindings(answer);
  get('calendar').hidden = !answer.calendar;
  if (answer.calendar) {
    drawCalendar(answer.calendar);
    get('next-change').disabled = !answer.calendar.nextChange;
  }
  get('play').hidden = !answer.play;
  if (answer.play) showPlay(answer.play, s);
  if (answer.play && /^\d{1,6}$/.test(moment ?? '')) pick(Number(moment));
  await remember();
}

function showProblem(problem) {
  const box = get('problem');
  for (const f of fields) get(f).removeAttribute('aria-invalid');
  box.hidden = !problem;
  box.replaceChildren();
  if (!problem) return;
  const names = { failRate: 'share that fails', lastRun: 'last run' };
  box.append(el('strong', problem.path || names[problem.field] || problem.field), el('span', ': ' + problem.text + ' '));
  const field = get(problem.field);
  if (!field) return;
  field.setAttribute('aria-invalid', 'true');
  if (problem.line) {
    const link = el('button', `Line ${problem.line}`);
    link.type = 'button';
    link.addEventListener('click', () => selectLine(field, problem.line));
    box.append(link);
  }
}

function selectLine(field, line) {
  const lines = field.value.split('\n');
  const from = lines.slice(0, line - 1).reduce((n, l) => n + l.length + 1, 0);
  field.focus();
  field.setSelectionRange(from, from + (lines[line - 1] ?? '').length);
  field.scrollTop = (field.scrollHeight / lines.length) * Math.max(line - 4, 0);
}

function showFindings(a) {
  const list = a.findings.filter((f) => f.severity !== 'error');
  get('know').hidden = list.length === 0;
  get('findings').replaceChildren(...list.map((f) => {
    const item = el('li', undefined, f.severity);
    item.append(el('strong', f.severity), el('code', f.path), el('span', f.text));
    return item;
  }));
}

function showPlay(play, s) {
  const verdict = get('verdict');
  const kinds = { Complete: 'good', Failed: 'bad' };
  verdict.className = kinds[play.verdict] ?? 'plain';
  const of = answer.kind === 'CronJob' ? `A Job of CronJob ${answer.name}` : `Job ${play.job}`;
  verdict.textContent = `${of}: ${play.verdict}${play.reason ? ` (${play.reason})` : ''} after ${clockText(play.makespanSeconds)}`;
  get('verdict-more').textContent = play.message || play.ending || '';
  get('which').textContent = play.indexed ? 'Index' : 'Pod';
  const last = play.moments.length - 1;
  chart.draw(play);
  get('moment').max = last;
  drawLog(play);
  get('command').textContent = commandLine(s);
  pick(last);
  announce(verdict.textContent);
}

function drawLog(play) {
  const items = play.timeline.slice(0, maxLog).map((entry) => {
    const item = el('li', undefined, entry.kind);
    const button = el('button');
    button.type = 'button';
    button.tabIndex = -1; // the slider reaches every moment by keyboard
    button.append(el('time', clockText(entry.atSeconds)), el('span', entry.text));
    button.addEventListener('click', () => {
      stop();
      pick(momentAt(entry.atSeconds));
    });
    item.append(button);
    return item;
  });
  if (play.timeline.length > maxLog) items.push(el('li', `… and ${play.timeline.length - maxLog} more lines`, 'hint'));
  get('log').replaceChildren(...items);
}

// commandLine is the command that plays the same.
function commandLine(s) {
  const quote = (text) => (/^[\w:@%+=,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
  let line = 'kubectl jobpolicy simulate -f job.yaml';
  for (const raw of s.script.split('\n')) {
    const text = raw.replace(/#.*/, '').trim();
    const [what] = text.split(' ', 1);
    if (text) line += ` --${what} ${quote(text.slice(what.length).trim())}`;
  }
  for (const [flag, value] of [['runtime', s.runtime], ['fail-rate', s.failRate], ['seed', s.seed]]) {
    if (value) line += ` --${flag} ${quote(value)}`;
  }
  return line;
}

// momentAt is the last moment that is not later.
function momentAt(seconds) {
  const moments = answer.play.moments;
  let low = 0;
  let high = moments.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (moments[middle] <= seconds + 1e-6) low = middle;
    else high = middle - 1;
  }
  return low;
}

// pick shows a moment; at is the time of the line in the picture.
function pick(i, at) {
  const play = answer.play;
  current = Math.max(0, Math.min(i, play.moments.length - 1));
  const seconds = play.moments[current];
  const moment = JSON.parse(jobpolicyMoment(current));
  drawMoment(moment);
  chart.show(at ?? seconds);
  const slider = get('moment');
  slider.value = current;
  slider.setAttribute('aria-valuetext', `${moment.clock}: ${moment.decisions.map((d) => d.summary).filter(Boolean).pop() ?? ''}`);
  get('clock').textContent = moment.clock;
  let shown = null;
  [...get('log').children].forEach((item, n) => {
    const entry = play.timeline[n];
    if (!entry) return;
    item.classList.toggle('later', entry.atSeconds > seconds + 1e-6);
    const now = Math.abs(entry.atSeconds - seconds) < 1e-6;
    item.classList.toggle('now', now);
    if (now && !shown) shown = item;
  });
  if (shown) get('log').scrollTop = shown.offsetTop - 60;
  clearTimeout(remembering);
  remembering = setTimeout(remember, 300);
}

function stop() {
  cancelAnimationFrame(animation);
  animation = 0;
  get('toggle').textContent = 'Play';
}

function toggle() {
  if (animation) {
    stop();
    return;
  }
  const end = chart.end;
  const from = current >= answer.play.moments.length - 1 ? 0 : answer.play.moments[current];
  const begin = performance.now() - (from / end) * playSeconds * 1000;
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  get('toggle').textContent = 'Pause';
  if (from === 0) pick(0);
  const frame = () => {
    const seconds = ((performance.now() - begin) / 1000 / playSeconds) * end;
    const i = momentAt(seconds);
    if (i !== current) pick(i, still ? undefined : seconds);
    else if (!still) chart.show(Math.min(seconds, end));
    if (seconds >= end) {
      stop();
      pick(answer.play.moments.length - 1);
      announce(get('verdict').textContent);
      return;
    }
    animation = requestAnimationFrame(frame);
  };
  animation = requestAnimationFrame(frame);
}

function addLine() {
  const what = get('add-what').value;
  const at = get('add-at').value.trim();
  const pods = get('add-pods').value.trim();
  const lines = {
    fail: `pod ${pods}:fail(${get('add-code').value.trim()})@${at}`,
    evict: `pod ${pods}:evict@${at}`,
    hang: `pod ${pods}:hang`,
    stuck: `pod ${pods}:stuck`,
    scale: `scale ${get('add-size').value.trim()}@${at}`,
  };
  const line = lines[what] ?? `${what} ${at}`;
  // In front: the first line that names a pod counts.
  get('script').value = (line + '\n' + get('script').value).trimEnd();
  run();
}

function showParts() {
  const what = get('add-what').value;
  for (const part of document.querySelectorAll('[data-for]')) part.hidden = !part.dataset.for.split(' ').includes(what);
  get('when').textContent = { fail: 'After', evict: 'After', 'quota-until': 'Until' }[what] ?? 'At';
}

function listen() {
  get('form').addEventListener('submit', (e) => e.preventDefault());
  for (const f of fields) {
    get(f).addEventListener('input', () => {
      clearTimeout(timer);
      timer = setTimeout(run, 250);
      get('preset').value = '';
    });
  }
  get('preset').addEventListener('change', () => {
    fill(presetState(presets[get('preset').value]));
    run();
  });
  get('add-what').addEventListener('change', showParts);
  get('add-line').addEventListener('click', addLine);
  get('next-change').addEventListener('click', () => {
    get('now').value = answer.calendar.nextChange;
    run();
  });
  get('toggle').addEventListener('click', toggle);
  get('back').addEventListener('click', () => { stop(); pick(current - 1); });
  get('forth').addEventListener('click', () => { stop(); pick(current + 1); });
  get('moment').addEventListener('input', () => { stop(); pick(Number(get('moment').value)); });
  get('share').addEventListener('click', share);
  addEventListener('hashchange', load);
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width || !answer?.play) return;
    width = innerWidth;
    showPlay(answer.play, state());
  });
}

async function share() {
  await remember();
  try {
    await navigator.clipboard.writeText(location.href);
    announce('The link is copied.');
    get('share').textContent = 'Copied';
  } catch {
    announce('The address of this page is the link.');
    get('share').textContent = 'The address is the link';
  }
  setTimeout(() => { get('share').textContent = 'Copy link'; }, 3000);
}

// load shows the state of the link, or the first example.
async function load() {
  let values = presetState(presets[0]);
  let bad = null;
  clearTimeout(remembering);
  get('preset').value = '0';
  if (location.hash.length > 1) {
    try {
      values = await fromLink(location.hash, [...fields, 'moment']);
      get('preset').value = '';
    } catch (e) {
      bad = e;
    }
  }
  fill(values);
  await run(values.moment);
  if (bad) showProblem({ field: 'link', text: bad.message });
}

async function startApp() {
  const own = el('option', 'my own');
  own.value = '';
  own.hidden = true;
  get('preset').replaceChildren(own, ...presets.map((p, i) => {
    const option = el('option', p.title);
    option.value = i;
    return option;
  }));
  chart = new Chart(get('chart'), (seconds) => { stop(); pick(momentAt(seconds)); });
  showParts();
  listen();
  get('loading').hidden = true;
  await load();
  document.documentElement.dataset.ready = 'yes';
}
