/* report_graph.js: the graph: a box for each kernel with the nodes of the model in it, and what flows between them.
 *
 * In: kernels and buffers. Out: boxes in layers. Method: a box stands below all that it reads (longest path). An edge over a few layers has a
 * bend in each, longer ones are short stubs until an end of theirs is selected: so work grows with the edges. Orders within layers follow the
 * mean place of neighbors, down and up in turn; places are the nearest to those means that keep the order and a distance (regression with
 * order, by pooling neighbors that collide). Only what is seen is drawn; from afar boxes are one path for each family.
 */

const GAP_X = 26, GAP_Y = 34, SPAN = 14, LINES = 6;

/* ---- boxes and edges ---- */

function boxes_and_edges() {
  const box = [], edge = [], writers = new Map(), input = new Map();
  const port = (b, kind) => { box.push({ port: kind, buffer: b.id, title: b.name, lines: [b.type] }); return box.length - 1; };
  for (const b of D.buffers) if (b.space === 'in') input.set(b.id, port(b, 'input'));
  const box_of = new Map();
  for (const k of D.kernels) {
    const repeat = hidden_in(k.i), head = repeat ? repeat.from + repeat.length : k.i;
    const me = box_of.has(head) ? box_of.get(head) : box.length;
    box_of.set(head, me);
    box_of.set(k.i, me);
    const lines = k.n.slice(0, LINES).map(i => D.nodes[i].op + (D.nodes[i].title === D.nodes[i].op ? '' : '  ' + D.nodes[i].title));
    if (k.n.length > LINES) lines[LINES - 1] = `and ${k.n.length - LINES + 1} more`;
    if (!repeat) box.push({ kernel: k.i, title: k.word, lines, heat: k.time / total });
    else if (me === box.length) box.push({ kernel: k.i, repeat, title: repeat_title(repeat), lines: [`kernels ${k.i + 1} to ${repeat.from + repeat.length * repeat.times}`], heat: 0 });
    if (repeat) box[me].heat += k.time / total;
    const seen = box[me].seen = box[me].seen || new Set();
    for (const id of k.r) for (const from of input.has(id) ? [input.get(id)] : writers.get(id) || [])
      if (from !== me && !seen.has(from)) { seen.add(from); edge.push([from, me]); }
    for (const id of k.w) { const w = writers.get(id) || []; if (!w.includes(me)) w.push(me); if (w.length > 48) w.shift(); writers.set(id, w); }
  }
  for (const b of D.buffers) if (b.space === 'out') { const at = port(b, 'output'); for (const from of writers.get(b.id) || []) edge.push([from, at]); }
  for (const x of box) {
    x.w = Math.ceil(Math.min(270, Math.max(90, 20 + Math.max(width(x.title, '600 12'), ...x.lines.map(s => width(s, '11'))))));
    x.h = 28 + 16 * x.lines.length + (x.lines.length ? 4 : 0);
  }
  return { box, edge, box_of };
}

/* ---- places ---- */

/* Sets x, y (of the middle, of the top) of every box; returns the paths of edges. */
function layout(box, edge) {
  const n = box.length, into = box.map(() => []), out = box.map(() => []);
  for (const e of edge) { out[e[0]].push(e[1]); into[e[1]].push(e[0]); }
  const layer = new Array(n).fill(0);
  for (let i = 0; i < n; i++) for (const p of into[i]) if (p < i && layer[p] >= layer[i]) layer[i] = layer[p] + 1; /* boxes come in the order they run */
  for (let i = 0; i < n; i++) if (!into[i].length && out[i].length) layer[i] = Math.max(0, out[i].reduce((a, o) => Math.min(a, layer[o]), Infinity) - 1);
  const cells = box.map((b, i) => ({ layer: layer[i], w: b.w, h: b.h, up: [], down: [], at: i, weight: 1 })), rows = [];
  const route = edge.map(([a, b]) => {
    if (layer[b] - layer[a] > SPAN || layer[b] <= layer[a]) return null;
    const way = [a];
    for (let l = layer[a] + 1; l < layer[b]; l++) { cells.push({ layer: l, w: 6, h: 0, up: [], down: [], at: cells.length, weight: 3 }); way.push(cells.length - 1); }
    way.push(b);
    for (let i = 1; i < way.length; i++) { cells[way[i]].up.push(way[i - 1]); cells[way[i - 1]].down.push(way[i]); }
    return way;
  });
  for (const c of cells) (rows[c.layer] = rows[c.layer] || []).push(c);
  for (let l = 0; l < rows.length; l++) rows[l] = rows[l] || [];
  for (const row of rows) row.forEach((c, i) => { c.order = i; });
  const mean = (list, key, otherwise) => { let s = 0; for (const i of list) s += cells[i][key]; return list.length ? s / list.length : otherwise; };
  for (let turn = 0; turn < 6; turn++) {
    const side = turn % 2 ? 'down' : 'up';
    for (const row of turn % 2 ? [...rows].reverse() : rows) {
      for (const c of row) c.key = mean(c[side], 'order', c.order);
      row.sort((a, b) => a.key - b.key || a.at - b.at).forEach((c, i) => { c.order = i; });
      const wide = row.length;
      row.forEach((c, i) => { c.order = i - (wide - 1) / 2; });
    }
  }
  for (const c of cells) c.x = 0;
  for (let turn = 0; turn < 14; turn++) {
    const sides = turn >= 10 ? ['up', 'down'] : [turn % 2 ? 'down' : 'up'];
    for (const row of turn % 2 ? [...rows].reverse() : rows) place(row, c => mean(sides.flatMap(s => c[s]), 'x', c.x));
  }
  straighten(rows);
  let y = 0;
  for (const row of rows) {
    const h = row.reduce((m, c) => Math.max(m, c.h), 0);
    for (const c of row) { c.y = y + (h - c.h) / 2; c.top = y; c.bottom = y + h; }
    y += h + GAP_Y;
  }
  box.forEach((b, i) => { b.x = cells[i].x; b.y = cells[i].y; b.layer = cells[i].layer; b.into = into[i]; b.out = out[i]; });
  return route.map((way, i) => way ? path_of(way.map(k => cells[k])) : stub_of(cells[edge[i][0]], cells[edge[i][1]]));
}

/* Layers that drift to one side, each a little further than the one before it, are moved back: by the mean of those around them. */
function straighten(rows) {
  const AROUND = 8, middle = rows.map(row => row.length ? (row[0].x + row[row.length - 1].x) / 2 : 0), sum = [0];
  for (const m of middle) sum.push(sum[sum.length - 1] + m);
  rows.forEach((row, l) => {
    const a = Math.max(0, l - AROUND), b = Math.min(rows.length, l + AROUND + 1), by = (sum[b] - sum[a]) / (b - a);
    for (const c of row) c.x -= by;
  });
}

/* The nearest places to those wished for that keep the order: least squares with order, by pooling. */
function place(row, wish) {
  const pool = [];
  let shift = 0;
  row.forEach((c, i) => {
    if (i) shift += (row[i - 1].w + c.w) / 2 + GAP_X;
    c.shift = shift;
    pool.push({ sum: (wish(c) - shift) * c.weight, weight: c.weight, from: i });
    while (pool.length > 1 && pool[pool.length - 2].sum / pool[pool.length - 2].weight > pool[pool.length - 1].sum / pool[pool.length - 1].weight) {
      const b = pool.pop(), a = pool[pool.length - 1];
      a.sum += b.sum;
      a.weight += b.weight;
    }
  });
  pool.forEach((p, k) => { for (let i = p.from; i < (k + 1 < pool.length ? pool[k + 1].from : row.length); i++) row[i].x = p.sum / p.weight + row[i].shift; });
}

const fixed = x => Math.round(x * 10) / 10;
function curve(x1, y1, x2, y2) { const m = fixed((y1 + y2) / 2); return `M${fixed(x1)} ${fixed(y1)}C${fixed(x1)} ${m} ${fixed(x2)} ${m} ${fixed(x2)} ${fixed(y2)}`; }
function path_of(way) {
  let d = '';
  const xs = way.map(c => c.x);
  for (let i = 1; i < way.length; i++) {
    const a = way[i - 1], b = way[i];
    d += curve(a.x, a.h ? a.y + a.h : a.bottom, b.x, b.h ? b.y : b.top);
    if (!b.h) d += `L${fixed(b.x)} ${fixed(b.bottom)}`;
  }
  return { d, x0: Math.min(...xs), x1: Math.max(...xs), y0: way[0].y, y1: way[way.length - 1].y };
}
function stub_of(a, b) {
  const ya = a.y + a.h;
  return { d: `M${fixed(a.x)} ${fixed(ya)}l8 16`, d2: `M${fixed(b.x - 8)} ${fixed(b.y - 16)}l8 16`, full: curve(a.x, ya, b.x, b.y), far: true,
    x0: Math.min(a.x, b.x), x1: Math.max(a.x, b.x), y0: a.y, y1: b.y, ends: [ya, b.y] };
}

/* ---- drawing ---- */

function graph_view() {
  const began = performance.now(), { box, edge, box_of } = boxes_and_edges(), routes = layout(box, edge);
  window.ingot_layout_ms = performance.now() - began;
  const world = sv('g'), picture = sv('svg', { id: 'graph', tabindex: 0, role: 'application', 'aria-label': 'Graph of kernels. Arrows go along it, plus and minus zoom, 0 shows all of it.' }, world);
  const place_of = { x: 0, y: 0, k: 1 }, first = box.findIndex(b => b.kernel !== undefined);
  const edge_of = box.map(() => []);
  edge.forEach((e, i) => { edge_of[e[0]].push(i); edge_of[e[1]].push(i); });
  let waiting = false, on = -1, far = null;
  const x0 = Math.min(0, ...box.map(b => b.x - b.w / 2)), x1 = Math.max(1, ...box.map(b => b.x + b.w / 2)), y1 = Math.max(1, ...box.map(b => b.y + b.h));

  function far_paths() {
    const d = new Map();
    for (const b of box) {
      const f = b.kernel === undefined ? '' : D.kernels[b.kernel].family;
      d.set(f, (d.get(f) || '') + `M${fixed(b.x - b.w / 2)} ${fixed(b.y)}h${fixed(b.w)}v${b.h}h${fixed(-b.w)}z`);
    }
    return [sv('path', { class: 'edge', 'stroke-width': 3, d: routes.map(r => r.far ? r.d + r.d2 : r.d).join('') }),
      ...[...d].map(([f, path]) => sv('path', { d: path, class: f ? null : 'port', style: f ? `fill:${color(f, place_of.k < 0.12 ? 'rim' : 'light')};stroke:${color(f, 'rim')};stroke-width:2` : null }))];
  }
  function draw_box(b, i) {
    const k = b.kernel === undefined ? null : D.kernels[b.kernel], left = b.x - b.w / 2, room = b.w - 18;
    const g = sv('g', { transform: `translate(${fixed(left)} ${fixed(b.y)})`, 'data-box': i });
    g.append(sv('rect', { class: 'box' + (k ? '' : ' port') + (i === on ? ' on' : ''), width: b.w, height: b.h, rx: k ? 5 : 14, style: k && `fill:${b.repeat ? 'var(--paper)' : color(k.family, 'light')};` + (i === on ? '' : `stroke:${color(k.family, 'rim')}`) }),
      sv('text', { class: 'word', x: 9, y: 19 }, cut(b.title, '600 12', room)), ...b.lines.map((s, j) => sv('text', { class: 'soft', x: 9, y: 37 + 16 * j }, cut(s, '11', room))));
    if (b.heat > 0.002) g.append(sv('rect', { class: 'heat', x: 0, y: b.h - 3, width: Math.max(2, Math.min(1, b.heat * 4) * b.w), height: 3 }));
    g.append(sv('title', {}, k ? b.repeat ? `${b.title}, ${percent(b.heat)} of the time${measured ? '' : ' by estimate'}` : `${k.label}\n${ways(k)}\n${measured ? ms(k.time) + ', ' : 'estimated share: '}${percent(b.heat)}` : `${b.port} ${b.title}\n${b.lines[0]}`));
    return g;
  }
  function draw() {
    waiting = false;
    const r = picture.getBoundingClientRect(), left = -place_of.x / place_of.k, top = -place_of.y / place_of.k, right = left + r.width / place_of.k, bottom = top + r.height / place_of.k;
    world.setAttribute('transform', `translate(${fixed(place_of.x)} ${fixed(place_of.y)}) scale(${place_of.k})`);
    const mine = on >= 0 ? new Set(edge_of[on]) : new Set();
    const marked = sv('path', { class: 'edge on', d: [...mine].map(i => routes[i].far ? routes[i].full : routes[i].d).join('') });
    if (place_of.k < 0.3) {
      const tiny = place_of.k < 0.12;
      if (!far || far.tiny !== tiny) { far = far_paths(); far.tiny = tiny; }
      const b = on >= 0 ? box[on] : null;
      world.replaceChildren(...far, marked, ...(b ? [sv('rect', { class: 'box on', x: b.x - b.w / 2, y: b.y, width: b.w, height: b.h, rx: 5, fill: 'none', style: 'stroke-width:8' })] : []));
      return;
    }
    const seen = e => e.x1 >= left && e.x0 <= right && e.y1 + 300 >= top && e.y0 <= bottom;
    const plain = [], stubs = [];
    routes.forEach((e, i) => { if (!mine.has(i) && seen(e)) (e.far ? stubs : plain).push(e.far ? e.d + e.d2 : e.d); });
    world.replaceChildren(sv('path', { class: 'edge', d: plain.join('') }), sv('path', { class: 'edge far', d: stubs.join('') }), marked,
      ...box.map((b, i) => [b, i]).filter(([b]) => b.x + b.w / 2 >= left && b.x - b.w / 2 <= right && b.y + b.h >= top && b.y <= bottom).map(([b, i]) => draw_box(b, i)));
  }
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };
  function zoom(by, cx, cy) {
    const r = picture.getBoundingClientRect(), k = Math.min(4, Math.max(0.01, place_of.k * by));
    cx = cx ?? r.width / 2;
    cy = cy ?? r.height / 2;
    place_of.x = cx - (cx - place_of.x) * k / place_of.k;
    place_of.y = cy - (cy - place_of.y) * k / place_of.k;
    place_of.k = k;
    later();
  }
  function fit() {
    const r = picture.getBoundingClientRect();
    place_of.k = Math.min(1.1, Math.max(0.01, Math.min((r.width - 24) / (x1 - x0), (r.height - 64) / y1)));
    place_of.x = r.width / 2 - (x0 + x1) / 2 * place_of.k;
    place_of.y = Math.max(16, (r.height - 32 - y1 * place_of.k) / 2);
    later();
  }
  /* All of a small graph, the beginning of a large one, at a size at which it can be read. */
  function begin() {
    fit();
    if (place_of.k >= 0.5) return;
    place_of.k = 0.85;
    const r = picture.getBoundingClientRect(), some = box.filter(b => b.y < r.height / place_of.k);
    place_of.x = r.width / 2 - (Math.min(...some.map(b => b.x - b.w / 2)) + Math.max(...some.map(b => b.x + b.w / 2))) / 2 * place_of.k;
    place_of.y = 20;
  }
  function center(b) {
    const r = picture.getBoundingClientRect();
    if (place_of.k < 0.5) place_of.k = 0.85;
    place_of.x = r.width / 2 - b.x * place_of.k;
    place_of.y = r.height / 2 - (b.y + b.h / 2) * place_of.k;
    later();
  }
  function pick(i, move) {
    const b = box[i];
    choose(b.kernel === undefined ? { buffer: b.buffer } : { kernel: b.kernel }, { from: 'graph' });
    on = i;
    if (move) center(b); else later();
  }
  const neighbor = (i, step) => { const row = box.map((b, j) => j).filter(j => box[j].layer === box[i].layer).sort((a, b) => box[a].x - box[b].x); return row[row.indexOf(i) + step]; };
  const nearest = (i, some) => some.reduce((best, j) => best === undefined || Math.abs(box[j].x - box[i].x) < Math.abs(box[best].x - box[i].x) ? j : best, undefined);
  const KEYS = { ArrowDown: i => nearest(i, box[i].out) ?? (i + 1 < box.length ? i + 1 : i), ArrowUp: i => nearest(i, box[i].into) ?? (i ? i - 1 : i), ArrowLeft: i => neighbor(i, -1), ArrowRight: i => neighbor(i, 1),
    Home: () => 0, End: () => box.length - 1 };
  picture.addEventListener('keydown', e => {
    if (e.key === '+' || e.key === '=') zoom(1.25);
    else if (e.key === '-') zoom(0.8);
    else if (e.key === '0') fit();
    else if (e.key === 'Enter') find('#detail').focus();
    else if (KEYS[e.key] && box.length) { const to = on < 0 ? Math.max(0, first) : KEYS[e.key](on); if (to !== undefined) pick(to, true); }
    else return;
    e.preventDefault();
  });
  picture.addEventListener('wheel', e => {
    const r = picture.getBoundingClientRect();
    zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0015)), e.clientX - r.x, e.clientY - r.y);
    e.preventDefault();
  }, { passive: false });
  dragging(picture, (dx, dy) => { place_of.x += dx; place_of.y += dy; later(); }, target => {
    const g = target.closest('[data-box]');
    if (g) pick(+g.dataset.box, false);
    else if (on >= 0) { on = -1; choose({}); later(); }
  });
  new ResizeObserver(() => later()).observe(picture);
  watchers.push(how => {
    if (how.from === 'graph' || !picture.isConnected) return;
    on = chosen.kernel >= 0 ? box_of.get(chosen.kernel) : box.findIndex(b => chosen.buffer && b.buffer === chosen.buffer);
    if (how.show && on >= 0) { show_tab('graph'); center(box[on]); }
    later();
  });
  const used = [...D.families, UNSAID].filter(f => D.kernels.some(k => k.family === f));
  const button = (text, title, fn) => el('button', { type: 'button', title, 'aria-label': title, onclick: fn }, text);
  const tools = el('div', { class: 'tools' }, button('+', 'Zoom in', () => zoom(1.25)), button('−', 'Zoom out', () => zoom(0.8)), button('All', 'Show all of the graph', fit),
    repeated.length ? button(view.collapsed ? 'Expand repeats' : 'Collapse repeats', 'Repeated blocks of kernels: one of each, or all', () => { view.collapsed = !view.collapsed; rebuild(); }) : '');
  const legend = el('div', { class: 'legend' }, used.map(f => el('span', { title: f.why }, el('i', { style: `background:${color(f, 'light')};border:1px solid ${color(f, 'rim')}` }), f.name)),
    el('span', {}, el('i', { style: 'background:var(--warm);height:3px;vertical-align:3px' }), measured ? 'share of the time' : 'share of the time, by estimate'));
  return { nodes: [picture, tools, legend], shown: begin, full: true };
}

/* Moves with the pointer pressed are a drag; without one it is a click. */
function dragging(picture, move, click) {
  let last = null, moved = 0;
  picture.addEventListener('pointerdown', e => { last = [e.clientX, e.clientY]; moved = 0; picture.setPointerCapture(e.pointerId); });
  picture.addEventListener('pointermove', e => {
    if (!last) return;
    moved += Math.abs(e.clientX - last[0]) + Math.abs(e.clientY - last[1]);
    if (moved > 3) move(e.clientX - last[0], e.clientY - last[1]);
    last = [e.clientX, e.clientY];
  });
  picture.addEventListener('pointerup', e => {
    last = null;
    const under = document.elementFromPoint(e.clientX, e.clientY);
    if (moved <= 3 && under) click(under);
  });
  picture.addEventListener('pointercancel', () => { last = null; });
}
