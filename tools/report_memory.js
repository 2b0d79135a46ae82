/* report_memory.js: memory over time: a bar for each buffer, from its first to its last step and from its offset on; what is alive at each
 * step, the peak, and the least that any plan would need.
 */
function memory_view() {
  const M = D.memory, lives = D.buffers.filter(b => b.life && b.bytes), steps = Math.max(1, D.points.length);
  if (!M.planned) return { nodes: [el('p', { class: 'note' }, 'Memory is not planned: ' + M.why)] };
  if (!lives.length) return { nodes: [el('p', { class: 'note' }, 'This model needs no arena: everything is in the arrays of the caller.')] };
  /* Two that share a place, one written over the other, count once. */
  const events = [], alive = new Array(steps).fill(0), there = new Map();
  for (const b of lives) events.push([b.life[0], 1, b], [Math.min(steps, b.life[1] + 1), 0, b]);
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]); /* what ends makes room for what begins */
  let now = 0, at = 0;
  for (let s = 0; s < steps; s++) {
    for (; at < events.length && events[at][0] <= s; at++) {
      const [, begins, b] = events[at], n = there.get(b.at) || 0;
      there.set(b.at, n + (begins ? 1 : -1));
      if (begins && !n) now += b.bytes;
      if (!begins && n === 1) now -= b.bytes;
    }
    alive[s] = now;
  }
  const peak = alive.reduce((best, x, i) => x > alive[best] ? i : best, 0), top = Math.max(M.arena, M.bound, 1);
  const picture = sv('svg', { id: 'memory-chart', tabindex: 0, role: 'img', 'aria-label': `Memory over time: ${lives.length} buffers, arena ${bytes(M.arena)}, at least ${bytes(M.bound)}. The table below has all of them.` });
  const view = { from: 0, to: steps };
  const hue = b => b.space === 'state' ? 280 : b.space === 'local' ? 45 : 150 + (b.id * 47) % 90;
  let waiting = false;
  function draw() {
    waiting = false;
    const r = picture.getBoundingClientRect(), L = 66, R = 12, T = 26, B = 28, W = Math.max(50, r.width - L - R), H = Math.max(50, r.height - T - B);
    const X = s => L + (s - view.from) / (view.to - view.from) * W, Y = v => T + H - v / top * H;
    const kids = [];
    for (let i = 0; i <= 4; i++) kids.push(sv('line', { class: 'axis', x1: L, x2: L + W, y1: Y(top * i / 4), y2: Y(top * i / 4) }), sv('text', { class: 'soft', x: L - 6, y: Y(top * i / 4) + 4, 'text-anchor': 'end' }, bytes(top * i / 4)));
    const bars = sv('svg', { x: L, y: 0, width: W, height: r.height, viewBox: `${L} 0 ${W} ${r.height}` });
    for (const b of lives) {
      const x = X(b.life[0]), w = X(Math.min(steps, b.life[1] + 1)) - x, y = Y(b.at + b.bytes), h = Y(b.at) - y;
      if (x > L + W || x + w < L) continue;
      const bar = sv('rect', { class: 'life' + (chosen.buffer === b.id ? ' on' : ''), x, y, width: Math.max(0.5, w), height: Math.max(0.5, h), 'data-buffer': b.id, style: `fill:hsl(${hue(b)} 45% var(--rim))` }, sv('title', {}, `${b.shown}\n${b.type}\n${bytes(b.bytes)} at ${group(b.at)}`));
      bars.append(bar);
      const shown = Math.max(x, L), room = Math.floor((Math.min(x + w, L + W) - shown - 8) / 6.4);
      if (h > 14 && room > 3) bars.append(sv('text', { x: shown + 4, y: y + Math.min(h / 2, 40) + 4, style: 'pointer-events:none;fill:#fff;font-size:11px' }, b.shown.length > room ? b.shown.slice(0, room - 1) + '…' : b.shown));
    }
    let d = '';
    for (let s = Math.max(0, Math.floor(view.from)); s < Math.min(steps, Math.ceil(view.to)); s++) d += `${d ? 'L' : 'M'}${fixed(X(s))} ${fixed(Y(alive[s]))}L${fixed(X(s + 1))} ${fixed(Y(alive[s]))}`;
    bars.append(sv('path', { class: 'alive', d }), sv('line', { class: 'peak', x1: X(peak + 0.5), x2: X(peak + 0.5), y1: T, y2: T + H }));
    const k = D.points[peak], mark = `peak: step ${peak + 1}${k >= 0 ? ', ' + D.kernels[k].word : ''}`, right = X(peak + 0.5) + 8 + width(mark, '12') > L + W;
    bars.append(sv('text', { x: X(peak + 0.5) + (right ? -5 : 5), y: T - 9, 'text-anchor': right ? 'end' : 'start' }, mark));
    kids.push(bars, sv('line', { class: 'bound', x1: L, x2: L + W, y1: Y(M.bound), y2: Y(M.bound) }), sv('line', { class: 'axis', x1: L, x2: L + W, y1: T + H, y2: T + H }),
      sv('text', { class: 'soft', x: L, y: T + H + 18 }, `step ${Math.floor(view.from) + 1}`), sv('text', { class: 'soft', x: L + W, y: T + H + 18, 'text-anchor': 'end' }, `${Math.ceil(view.to)} of ${steps}`));
    picture.replaceChildren(...kids);
  }
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  function span(from, wide) {
    wide = Math.min(steps, Math.max(Math.min(4, steps), wide));
    view.from = Math.min(Math.max(0, from), steps - wide);
    view.to = view.from + wide;
    later();
  }
  const zoom = (by, share) => { const wide = (view.to - view.from) * by; span(view.from + (view.to - view.from - wide) * share, wide); };
  picture.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.shiftKey && view.to - view.from >= steps && e.deltaY > 0) return;
    const r = picture.getBoundingClientRect();
    zoom(Math.exp(e.deltaY * 0.0015), Math.min(1, Math.max(0, (e.clientX - r.x - 66) / (r.width - 78))));
    e.preventDefault();
  }, { passive: false });
  picture.addEventListener('keydown', e => {
    const step = (view.to - view.from) / 8;
    const act = { '+': () => zoom(0.7, 0.5), '=': () => zoom(0.7, 0.5), '-': () => zoom(1.4, 0.5), 0: () => span(0, steps), ArrowLeft: () => span(view.from - step, view.to - view.from), ArrowRight: () => span(view.from + step, view.to - view.from) }[e.key];
    if (act) { act(); e.preventDefault(); }
  });
  dragging(picture, dx => span(view.from - dx / picture.getBoundingClientRect().width * (view.to - view.from), view.to - view.from), target => { if (target.dataset.buffer) choose({ buffer: +target.dataset.buffer }); });
  new ResizeObserver(later).observe(picture);
  watchers.push(later);
  const rows = table([{ title: 'buffer', text: true, of: b => b.shown, show: b => to_buffer(b.id) }, { title: 'type', text: true, of: b => b.type, show: b => el('span', { class: 'type' }, b.type) },
    { title: 'bytes', of: b => b.bytes, show: b => group(b.bytes), bar: b => b.bytes / top }, { title: 'offset', of: b => b.at, show: b => group(b.at) },
    { title: 'from step', of: b => b.life[0], show: b => b.life[0] + 1 }, { title: 'to', of: b => b.life[1], show: b => Math.min(steps, b.life[1] + 1) }], lives, { on: b => b.id === chosen.buffer });
  return { nodes: [el('p', { class: 'note' }, `Every buffer of the arena from its first to its last step (across) and at its place (up). The arena takes ${bytes(M.arena)}; no plan can do with less than ${bytes(M.bound)} (dashed), ` +
    `and without reuse it would be ${bytes(M.naive)}. The thin line is what is needed at each step.`), picture, rows], shown: later };
}
