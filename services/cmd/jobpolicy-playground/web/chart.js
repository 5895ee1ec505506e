'use strict';

// The picture of a play (package timeline makes it): a bar for each pod on an axis of virtual
// time, a row for each index of an Indexed Job, otherwise for each pod. All text goes in as
// text, never as HTML.

const maxRows = 300;
const glyphs = { succeeded: '✓', failed: '✕', evicted: '↯', deleted: '–' };

function svg(name, attributes, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

// clockText writes seconds as people do: 1h30m, 90s as 1m30s.
function clockText(seconds) {
  const s = Math.round(seconds * 10) / 10;
  const parts = [[86400, 'd'], [3600, 'h'], [60, 'm']];
  let rest = s;
  let out = '';
  for (const [size, unit] of parts) {
    const n = Math.floor(rest / size);
    if (n > 0) out += n + unit;
    rest -= n * size;
  }
  rest = Math.round(rest * 10) / 10;
  return rest > 0 || out === '' ? out + rest + 's' : out;
}

// tickStep is a round number of seconds, so that at most n ticks fit.
function tickStep(span, n) {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000];
  return steps.find((s) => span / s <= n) ?? Math.ceil(span / n / 86400) * 86400;
}

class Chart {
  constructor(box, onPick) {
    this.box = box;
    this.onPick = onPick;
  }

  draw(play) {
    const picture = play.picture;
    this.end = picture.seconds;
    this.ends = new Map(play.pods.map((pod) => [pod.name, pod.endedSeconds ?? Infinity]));
    this.width = Math.max(this.box.clientWidth, 280);
    this.left = 44;
    this.right = this.width - 12;
    this.top = 34;
    const bars = picture.bars ?? [];
    const rows = new Map(bars.map((bar) => [bar.line, bars.filter((other) => other.line === bar.line)]));
    this.rowHeight = rows.size <= 24 ? 20 : rows.size <= 60 ? 12 : 5;
    const shown = [...rows.entries()].slice(0, maxRows);
    this.height = this.top + shown.length * this.rowHeight + 6;
    const root = svg('svg', {
      viewBox: `0 0 ${this.width} ${this.height}`, width: this.width, height: this.height, role: 'img',
      'aria-label': `${bars.length} pods in ${rows.size} rows over ${clockText(this.end)}; the list below says the same in words`,
    });
    this.drawAxis(root);
    this.bars = [];
    shown.forEach(([row, pods], i) => this.drawRow(root, row, pods, i));
    for (const mark of picture.marks ?? []) this.drawMark(root, mark);
    this.future = svg('rect', { class: 'future', y: this.top, height: this.height - this.top });
    this.cursor = svg('line', { class: 'cursor', y1: this.top - 8, y2: this.height });
    root.append(this.future, this.cursor);
    root.addEventListener('click', (e) => this.onPick(this.timeAt(e)));
    this.box.replaceChildren(root);
    if (rows.size > maxRows) {
      const note = document.createElement('p');
      note.className = 'hint';
      note.textContent = `The first ${maxRows} of ${rows.size} rows.`;
      this.box.append(note);
    }
  }

  x(seconds) {
    return this.at((100 * seconds) / this.end);
  }

  // at is the place of a percentage of the picture.
  at(percent) {
    return this.left + ((this.right - this.left) * Math.min(percent, 100)) / 100;
  }

  timeAt(event) {
    const box = this.box.firstChild.getBoundingClientRect();
    const x = (event.clientX - box.left) * (this.width / box.width);
    return ((x - this.left) / (this.right - this.left)) * this.end;
  }

  drawAxis(root) {
    const step = tickStep(this.end, Math.max(3, (this.right - this.left) / 90));
    for (let t = 0; t <= this.end; t += step) {
      root.append(
        svg('line', { class: 'grid', x1: this.x(t), x2: this.x(t), y1: this.top - 4, y2: this.height }),
        svg('text', { class: 'tick', x: this.x(t), y: 12, 'text-anchor': t === 0 ? 'start' : this.x(t) > this.right - 24 ? 'end' : 'middle' }, clockText(t)),
      );
    }
  }

  drawRow(root, row, pods, i) {
    const y = this.top + i * this.rowHeight;
    if (this.rowHeight >= 12 || i % 10 === 0) {
      root.append(svg('text', { class: 'label', x: this.left - 8, y: y + this.rowHeight / 2 + 4, 'text-anchor': 'end' }, String(row)));
    }
    for (const pod of pods) this.drawPod(root, pod, y);
  }

  drawPod(root, pod, y) {
    const gap = this.rowHeight > 8 ? 3 : 1;
    const size = { y: y + gap, height: this.rowHeight - 2 * gap, rx: Math.min(3, gap) };
    const group = svg('g', {});
    group.append(svg('title', {}, `${pod.name}: ${pod.text}`));
    for (const part of pod.parts) {
      const begin = this.at(Number(part.left));
      const end = this.at(Number(part.left) + Number(part.width));
      const bar = svg('rect', { ...size, class: 'pod ' + part.class, x: begin, width: Math.max(end - begin, part.class === 'wait' ? 1 : 2) });
      group.append(bar);
      if (part.class === 'wait') continue;
      let glyph = null;
      if (this.rowHeight >= 20 && end - begin > 18 && glyphs[part.class]) {
        glyph = svg('text', { class: 'glyph', x: end - 9, y: y + this.rowHeight / 2 + 4, 'text-anchor': 'middle' }, glyphs[part.class]);
        group.append(glyph);
      }
      this.bars.push({ bar, glyph, ended: this.ends.get(pod.name), outcome: part.class });
    }
    for (const failure of pod.failures ?? []) {
      const x = this.at(Number(failure));
      group.append(svg('line', { class: 'restart', x1: x, x2: x, y1: size.y, y2: size.y + size.height }));
    }
    root.append(group);
  }

  drawMark(root, mark) {
    const x = this.at(Number(mark.left));
    const group = svg('g', { class: 'mark' });
    group.append(
      svg('title', {}, `${mark.at}: ${mark.text}`),
      svg('line', { x1: x, x2: x, y1: this.top - 6, y2: this.height }),
      svg('path', { d: `M ${x} ${this.top - 15} l 5 5 l -5 5 l -5 -5 z` }),
    );
    root.append(group);
  }

  // show marks a time: what is later is faint, and pods look as they did then.
  show(seconds) {
    const x = this.x(seconds);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    this.future.setAttribute('x', x);
    this.future.setAttribute('width', Math.max(this.width - x, 0));
    for (const { bar, glyph, ended, outcome } of this.bars) {
      const over = ended <= seconds + 1e-6;
      bar.setAttribute('class', 'pod ' + (over ? outcome : 'run'));
      if (glyph) glyph.classList.toggle('unseen-glyph', !over);
    }
  }
}
