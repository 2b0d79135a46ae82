/* report.js: what the parts of the page share: data, elements, numbers, tables, details, search.
 *
 * In: the block of JSON that ingot wrote. Out: the page. Texts come from models and may be anything: they become text nodes, never HTML.
 */
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const find = s => document.querySelector(s);

/* ---- elements ---- */

function fill(e, attrs, kids) {
  for (const name in attrs || {}) {
    const x = attrs[name];
    if (name.startsWith('on')) e.addEventListener(name.slice(2), x);
    else if (x !== undefined && x !== null && x !== false) e.setAttribute(name, x === true ? '' : x);
  }
  for (const k of kids.flat(9)) if (k !== undefined && k !== null && k !== '') e.append(k);
  return e;
}
const el = (tag, attrs, ...kids) => fill(document.createElement(tag), attrs, kids);
const sv = (tag, attrs, ...kids) => fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attrs, kids);

const pen = document.createElement('canvas').getContext('2d'), widths = new Map();
const FONT = 'px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
function width(text, font) {
  const key = font + text;
  let w = widths.get(key);
  if (w === undefined) { pen.font = font + FONT; w = pen.measureText(text).width; widths.set(key, w); }
  return w;
}
function cut(text, font, room) {
  let n = text.length, w = width(text, font);
  while (n > 1 && w > room) { n = Math.max(1, Math.min(n - 1, Math.floor(n * room / w))); w = width(text.slice(0, n) + '…', font); }
  return n < text.length ? text.slice(0, n) + '…' : text;
}

/* ---- numbers ---- */

const group = n => Math.round(n).toLocaleString('en');
function scaled(n, step, units, digits = 3) {
  let i = 0;
  while (Math.abs(n) >= step && i + 1 < units.length) { n /= step; i++; }
  return (i ? n.toPrecision(digits).replace(/e\+?(\d+)/, 'e$1') : String(+n.toPrecision(6))) + units[i];
}
const bytes = n => scaled(n, 1024, [' B', ' KiB', ' MiB', ' GiB', ' TiB'], 4);
const count = n => n < 100000 ? group(n) : scaled(n, 1000, ['', ' k', ' M', ' G', ' T']);
const ms = x => x >= 1 ? x.toPrecision(4) + ' ms' : (x * 1000).toPrecision(3) + ' µs';
const percent = x => (100 * x).toFixed(1) + ' %';
const small = x => x === null || x === undefined ? '-' : x === 0 ? '0' : Math.abs(x) < 1e-3 ? x.toExponential(2) : x.toPrecision(3);

/* ---- kernels ---- */

const UNSAID = { name: 'loops of its operator', hue: -1, why: 'an operator that writes its own loops' };
const buffers = new Map(D.buffers.map(b => [b.id, b]));
const measured = !!D.bench;
D.kernels.forEach((k, i) => {
  k.i = i;
  k.word = k.label.split(' ')[0];
  k.family = k.how.length ? D.families[k.how[0].family] : UNSAID;
  k.time = measured ? (k.ms || 0) : k.us / 1000;
});
D.nodes.forEach((n, i) => { n.i = i; n.title = n.name || (n.out.find(x => x[0]) || [n.op])[0]; });
/* Names that ingot made up say less than the node whose result it is. */
for (const b of D.buffers) b.shown = b.name || 'a buffer';
for (const k of D.kernels) for (const id of k.w) {
  const b = buffers.get(id), last = D.nodes[k.n[k.n.length - 1]];
  if (b && last && (!b.name || /^[a-z]\d+$/.test(b.name))) b.shown = last.title;
}
const total = D.kernels.reduce((s, k) => s + k.time, 0) || 1;
const color = (family, part) => family.hue < 0 ? `hsl(225 12% var(--${part}))` : `hsl(${family.hue} ${part === 'light' ? 60 : 55}% var(--${part}))`;
const way = x => D.families[x.family].name + (x.size ? ' ' + x.size : '');
const reason = x => D.families[x.family].why + (x.reason ? ': ' + x.reason : '');
const ways = k => k.how.length ? k.how.map(x => `${way(x)} (${reason(x)})`).join('; ') : UNSAID.name;
function rates(k) {
  const macs = k.did === undefined ? k.macs : k.did, s = k.time / 1000;
  if (!(s > 0)) return {};
  return { gflops: 2e-9 * macs / s, gbps: 1e-9 * k.bytes * (k.calls || 1) / s, peak: measured && D.bench.gflops ? 2e-9 * macs / s / D.bench.gflops : undefined };
}

/* ---- repeated blocks ---- */

/* Layers of a network that follow each other with the same kernels: {from, length, times}. Method: tandem repeats; from each kernel on, the period that
 * covers most. Kernels are equal when their families, operators and sizes are. */
const MOST_PERIOD = 64;
function repeats() {
  const key = D.kernels.map(k => [k.word, k.family.name, k.macs, k.bytes, k.n.map(i => D.nodes[i].op).join()].join(' ')), found = [];
  for (let i = 0; i < key.length;) {
    let best = null;
    for (let p = 1; p <= MOST_PERIOD && i + 2 * p <= key.length; p++) {
      let n = 0;
      while (i + n + p < key.length && key[i + n] === key[i + n + p]) n++;
      const times = 1 + Math.floor(n / p);
      if (times > 1 && times * p >= 4 && (!best || times * p > best.times * best.length)) best = { from: i, length: p, times };
    }
    if (best) found.push(best);
    i += best ? best.times * best.length : 1;
  }
  return found;
}
const repeated = repeats();
const view = { collapsed: repeated.length > 0 };
/* The repeat that hides kernel i while repeats are collapsed: all instances but the first are one box, or one row. */
const hidden_in = i => view.collapsed ? repeated.find(r => i >= r.from + r.length && i < r.from + r.length * r.times) : undefined;
const repeat_title = r => `${r.times - 1} more like the ${r.length > 1 ? r.length + ' kernels' : 'kernel'} before`;

/* ---- what is selected ---- */

const watchers = [];
const chosen = { kernel: -1, node: -1, buffer: 0 };
function choose(what, how) {
  Object.assign(chosen, { kernel: -1, node: -1, buffer: 0 }, what);
  detail();
  for (const w of watchers) w(how || {});
}
const link = (text, fn) => el('button', { class: 'link', type: 'button', onclick: fn }, text);
const to_kernel = i => link(`${i + 1}. ${D.kernels[i].word}`, () => { choose({ kernel: i }, { show: true }); });
const node_text = n => [el('span', { class: 'kind' }, n.op + ' '), n.title === n.op ? '' : n.title];
const to_node = i => link(node_text(D.nodes[i]), () => choose({ node: i, kernel: D.nodes[i].k.length ? D.nodes[i].k[0] : -1 }, { show: true }));
const to_buffer = id => { const b = buffers.get(id); return b ? link(b.shown, () => choose({ buffer: id })) : ''; };
const pairs = rows => el('dl', { class: 'pairs' }, rows.filter(r => r && r[1] !== undefined && r[1] !== '').map(r => [el('dt', {}, r[0]), el('dd', {}, r[1])]));
const list = (title, items) => items.length ? [el('h3', {}, title), el('ul', {}, items.map(x => el('li', {}, x)))] : [];
const chip = family => el('span', { class: 'chip', title: family.why, style: `background:${color(family, 'light')};border-color:${color(family, 'rim')}` }, family.name);

const maker = new Map();
D.nodes.forEach((n, i) => n.out.forEach(v => { if (v[0] && !maker.has(v[0])) maker.set(v[0], i); }));
function value_line(v, from) {
  const made = from && maker.has(v[0]) ? maker.get(v[0]) : -1;
  return [made >= 0 ? link(v[0], () => choose_node(made)) : v[0] || 'a value', ' ', el('span', { class: 'type' }, v[1] + (v[2] ? ' constant' : ''))];
}
function choose_node(i) { choose({ node: i, kernel: D.nodes[i].k.length ? D.nodes[i].k[0] : -1 }, { show: true }); }

function node_detail(n) {
  const gone = n.k.length ? '' : n.gone ? 'Needs no kernel: computed while compiling, or part of what others compute.' : 'Needs no kernel: it costs nothing while the model runs.';
  return [el('h2', {}, n.title), el('p', {}, el('span', { class: 'kind' }, n.op)), gone && el('p', {}, gone),
    n.attrs && [el('h3', {}, 'Attributes'), n.attrs.split(/, (?=[A-Za-z_]\w*=)/).map(a => el('div', {}, el('code', {}, a)))],
    list('Inputs', n.in.map(v => value_line(v, true))), list('Outputs', n.out.map(v => value_line(v, false))),
    list(n.k.length > 1 ? 'Kernels' : 'Kernel', n.k.map(to_kernel)),
    n.core.length ? [el('h3', {}, 'Composed of'), el('code', {}, n.core.join(', '))] : [], error_of(n)];
}
function error_of(n) {
  const rows = (D.errors || []).filter(e => e.of === n.i && e.abs !== undefined);
  return rows.length ? [el('h3', {}, 'Error of ' + D.engine), rows.map(e => el('div', {}, `${e.value}: max abs ${small(e.abs)}, max rel ${small(e.rel)}`))] : [];
}
function why_lines(k) {
  return k.how.length ? k.how.map(x => el('p', {}, way(x), el('span', { class: 'kind' }, ': ' + reason(x)))) : el('p', {}, UNSAID.name);
}
function kernel_detail(k) {
  const r = rates(k), reads = k.r.map(b => buffers.get(b)).filter(Boolean);
  const line = b => [b.space === 'const' ? b.name : to_buffer(b.id), ' ', el('span', { class: 'type' }, b.type)];
  return [el('h2', {}, `${k.i + 1}. ${k.word}`), el('p', {}, chip(k.family)), el('h3', {}, 'How it is written, and why'), why_lines(k),
    pairs([[measured ? 'time' : 'share of the estimated cost', (measured ? ms(k.time) + ', ' : '') + percent(k.time / total)], k.calls > 1 && ['calls', group(k.calls)], ['multiply-adds', count(k.did === undefined ? k.macs : k.did)],
      measured && ['GFLOP/s', r.gflops ? r.gflops.toPrecision(3) + (r.peak ? `, ${percent(r.peak)} of peak` : '') : ''], ['touches', bytes(k.bytes)], measured && ['GB/s', r.gbps ? r.gbps.toFixed(2) : '']]),
    list('Nodes of the model', k.n.map(to_node)), list('Reads', reads.filter(b => b.space !== 'const').map(line)),
    list('Weights', reads.filter(b => b.space === 'const').map(line)), list('Writes', k.w.map(b => buffers.get(b)).filter(Boolean).map(line))];
}
function buffer_detail(b) {
  const writers = D.kernels.filter(k => k.w.includes(b.id)), readers = D.kernels.filter(k => k.r.includes(b.id));
  const kinds = { in: 'an input', out: 'an output', const: 'a constant', temp: 'in the arena', state: 'kept from run to run', local: 'scratch of one kernel' };
  return [el('h2', {}, b.shown), el('p', { class: 'type' }, b.type),
    pairs([['where', kinds[b.space]], ['size', bytes(b.bytes)], b.life && ['offset', group(b.at)], b.life && ['needed', `from step ${b.life[0] + 1} to ${b.life[1] + 1}`]]),
    list('Written by', writers.map(k => to_kernel(k.i))), list('Read by', readers.map(k => to_kernel(k.i)))];
}
function model_detail() {
  return [el('h2', {}, D.model), pairs([...D.facts, ['machine', D.target], ['by', 'ingot ' + D.ingot]]), list('Inputs', D.inputs.map(v => value_line(v, false))),
    list('Outputs', D.outputs.map(v => value_line(v, true))),
    el('h3', {}, 'Keys'), el('p', { class: 'kind' }, '/ search. In the graph: arrows go along it, + and - zoom, 0 shows all of it, Enter goes to these details.')];
}
function detail() {
  const c = chosen, box = find('#detail');
  box.replaceChildren(...[c.buffer ? buffer_detail(buffers.get(c.buffer)) : c.node >= 0 ? node_detail(D.nodes[c.node]) : c.kernel >= 0 ? kernel_detail(D.kernels[c.kernel]) : model_detail()]
    .flat(9).filter(x => x !== '' && x !== undefined && x !== null && x !== false));
  box.scrollTop = 0;
}

/* ---- tables ---- */

/* cols: {title, of: row -> number or text, show: row -> what stands there, text: aligned left, bar: row -> 0..1} */
function table(cols, rows, o) {
  let by = -1, down = true, most = 300;
  const head = el('tr'), body = el('tbody'), more = el('button', { class: 'more', type: 'button', hidden: true, onclick: () => { most = Infinity; draw(); } });
  const order = () => by < 0 ? rows : [...rows].sort((a, b) => {
    const x = cols[by].of(a), y = cols[by].of(b), d = typeof x === 'string' ? x.localeCompare(y) : (x ?? -Infinity) - (y ?? -Infinity);
    return down ? -d : d;
  });
  function draw() {
    head.replaceChildren(...cols.map((c, i) => el('th', { class: c.text && 'text', 'aria-sort': i === by ? (down ? 'descending' : 'ascending') : null },
      el('button', { type: 'button', onclick: () => { down = by === i ? !down : !c.text; by = i; draw(); } }, c.title + (i === by ? (down ? ' ▾' : ' ▴') : '')))));
    body.replaceChildren(...order().slice(0, most).map(row => el('tr', { class: [o.on && o.on(row) && 'on', o.bad && o.bad(row) && 'bad'].filter(Boolean).join(' ') || null },
      cols.map(c => el('td', { class: c.text ? 'text' : c.bar ? 'bar' : null, title: c.text && String(c.of(row)).length > 40 ? c.of(row) : null }, c.bar && el('i', { style: `width:${Math.max(0, Math.min(100, 100 * c.bar(row)))}%` }),
        c.bar ? el('span', {}, c.show(row)) : c.show ? c.show(row) : String(c.of(row)))))));
    more.hidden = rows.length <= most;
    more.textContent = `Show all ${group(rows.length)}`;
  }
  draw();
  watchers.push(draw);
  return el('div', {}, el('div', { class: 'scroll' }, el('table', {}, el('thead', {}, head), body)), more);
}

/* ---- search ---- */

const entries = [...D.nodes.map(n => ({ kind: n.op, text: n.title, also: [n.op, n.name, ...n.out.map(v => v[0])].join('\n').toLowerCase(), go: () => choose_node(n.i) })),
  ...D.kernels.map(k => ({ kind: 'kernel', text: `${k.i + 1}. ${k.word}`, also: k.label.toLowerCase(), go: () => choose({ kernel: k.i }, { show: true }) })),
  ...D.buffers.filter(b => b.life || b.space === 'const').map(b => ({ kind: b.space === 'const' ? 'constant' : 'buffer', text: b.shown, also: b.name.toLowerCase(), go: () => choose({ buffer: b.id }) }))];
function search() {
  const box = find('#search'), out = find('#found');
  let hits = [], at = 0;
  const close = () => { out.hidden = true; box.setAttribute('aria-expanded', 'false'); box.removeAttribute('aria-activedescendant'); };
  const go = i => { close(); hits[i].go(); };
  function draw() {
    out.replaceChildren(...(hits.length ? hits.map((h, i) => el('li', { id: 'hit' + i, role: 'option', 'aria-selected': String(i === at), onmousedown: e => { e.preventDefault(); go(i); } },
      el('span', { class: 'kind' }, h.kind), h.text)) : [el('li', { role: 'option', 'aria-selected': 'false' }, 'Nothing has that name')]));
    out.hidden = false;
    box.setAttribute('aria-expanded', 'true');
    if (hits.length) { box.setAttribute('aria-activedescendant', 'hit' + at); out.children[at].scrollIntoView({ block: 'nearest' }); }
  }
  box.addEventListener('input', () => {
    const q = box.value.trim().toLowerCase();
    if (!q) { close(); return; }
    const rank = e => { const t = e.text.toLowerCase(); return t === q ? 0 : t.startsWith(q) ? 1 : t.includes(q) ? 2 : e.also.includes(q) ? 3 : 9; };
    hits = entries.map(e => [rank(e), e]).filter(x => x[0] < 9).sort((a, b) => a[0] - b[0]).slice(0, 60).map(x => x[1]);
    at = 0;
    draw();
  });
  box.addEventListener('keydown', e => {
    if (out.hidden || !hits.length) { if (e.key === 'Escape') { box.value = ''; close(); } return; }
    if (e.key === 'ArrowDown' || e.key === 'ArrowUp') { at = (at + (e.key === 'ArrowDown' ? 1 : hits.length - 1)) % hits.length; draw(); e.preventDefault(); }
    else if (e.key === 'Enter') { go(at); e.preventDefault(); }
    else if (e.key === 'Escape') close();
  });
  box.addEventListener('blur', close);
  document.addEventListener('keydown', e => {
    if (e.key === '/' && !/INPUT|TEXTAREA/.test(document.activeElement.tagName)) { box.focus(); box.select(); e.preventDefault(); }
  });
}
