/* report_start.js: the parts of the page that are tables, and the page put together. */

const share = k => k.time / total;
function kernels_view() {
  const cols = [{ title: '#', of: k => k.i, show: k => k.i + 1 }, { title: 'kernel', text: true, of: k => k.word, show: k => link(k.word, () => choose({ kernel: k.i })) },
    { title: 'nodes', text: true, of: k => k.n.map(i => D.nodes[i].title).join(' + ') || '-' }, { title: 'written as', text: true, of: k => k.family.name, show: k => chip(k.family) },
    measured && { title: 'time', of: k => k.time, show: k => ms(k.time) }, { title: measured ? 'share' : 'estimated share', of: share, show: k => percent(share(k)), bar: share },
    { title: 'multiply-adds', of: k => k.did ?? k.macs, show: k => count(k.did ?? k.macs) }].filter(Boolean);
  if (measured) cols.push({ title: 'GFLOP/s', of: k => rates(k).gflops || 0, show: k => (rates(k).gflops || 0).toFixed(2) }, { title: 'of peak', of: k => rates(k).peak || 0, show: k => percent(rates(k).peak || 0), bar: k => rates(k).peak || 0 });
  cols.push({ title: 'bytes', of: k => k.bytes, show: k => bytes(k.bytes) });
  if (measured) cols.push({ title: 'GB/s', of: k => rates(k).gbps || 0, show: k => (rates(k).gbps || 0).toFixed(2) }, { title: 'calls', of: k => k.calls || 0, show: k => group(k.calls || 0) });
  const B = D.bench, note = measured ? `Measured on ${B.cpu || 'this machine'}, ${B.threads} thread${B.threads > 1 ? 's' : ''}, ${group(B.n)} runs: median ${ms(B.p50)}, least ${ms(B.min)}. The machine reaches ${B.gflops.toFixed(1)} GFLOP/s and reads ${B.gbps.toFixed(1)} GB/s. A multiply-add counts as two.`
    : 'Shares of the run time come from the cost model of the compiler. With --bench every kernel is measured.';
  const shown = D.kernels.filter(k => !hidden_in(k.i)), used = [...D.families, UNSAID].filter(f => D.kernels.some(k => k.family === f));
  const folded = repeated.map(r => el('p', { class: 'note' }, `Kernels ${r.from + 1} to ${r.from + r.length} repeat ${r.times - 1} more time${r.times > 2 ? 's' : ''}, up to kernel ${r.from + r.length * r.times}.`));
  return { nodes: [el('p', { class: 'note' }, note), ...folded,
    repeated.length ? el('p', {}, el('button', { class: 'more', type: 'button', onclick: () => { view.collapsed = !view.collapsed; rebuild(); } }, view.collapsed ? `Show all ${group(D.kernels.length)} kernels` : 'Collapse repeats')) : '',
    table(cols, shown, { on: k => k.i === chosen.kernel }), el('h2', { style: 'margin:18px 0 6px' }, 'Kernel families'),
    table([{ title: 'written as', text: true, of: f => f.name, show: f => chip(f) }, { title: 'what it means', text: true, of: f => f.why }, { title: 'kernels', of: f => D.kernels.filter(k => k.family === f).length }], used, {})] };
}

function sizes_view() {
  const M = D.memory, B = D.bench, most = D.weights.length ? D.weights[0][1] : 1;
  const rows = [['weights', M.weights, 'constants of the program'], B ? ['code', B.text, 'measured: of the object file'] : ['code', M.code, 'an estimate'], ['arena', M.arena, M.planned ? `at least ${bytes(M.bound)}` : M.why], ['stack', M.stack, 'at most'],
    ['inputs', M.inputs, 'arrays of the caller'], ['outputs', M.outputs, 'arrays of the caller'], ['RAM', M.ram, 'arena, stack, inputs and outputs']].filter(r => r[1]);
  return { nodes: [el('p', { class: 'note' }, `For the machine “${D.target}”.`), table([{ title: 'what', text: true, of: r => r[0] }, { title: 'bytes', of: r => r[1], show: r => group(r[1]) }, { title: '', of: r => r[1], show: r => bytes(r[1]) }, { title: 'note', text: true, of: r => r[2] }], rows, {}),
    el('h2', { style: 'margin:18px 0 6px' }, 'Weights'), D.weights.length ? table([{ title: 'constant', text: true, of: w => buffers.get(w[0]).name, show: w => link(buffers.get(w[0]).name || 'a constant', () => choose({ buffer: w[0] })) },
      { title: 'type, as it lies', text: true, of: w => buffers.get(w[0]).type, show: w => el('span', { class: 'type' }, buffers.get(w[0]).type) }, { title: 'bytes', of: w => w[1], show: w => group(w[1]), bar: w => w[1] / most }], D.weights, { on: w => w[0] === chosen.buffer }) : el('p', { class: 'note' }, 'none'),
    D.more_weights[0] ? el('p', { class: 'note' }, `and ${group(D.more_weights[0])} more of ${bytes(D.more_weights[1])} together`) : ''] };
}

function nodes_view() {
  const where = n => n.k.length ? n.k.map(i => i + 1).join(', ') : n.gone ? 'computed while compiling, or part of others' : 'costs nothing';
  return { nodes: [el('p', { class: 'note' }, 'Nodes of the model as its file has them, with the kernels that compute them.'),
    table([{ title: '#', of: n => n.i, show: n => n.i + 1 }, { title: 'operator', text: true, of: n => n.op }, { title: 'node', text: true, of: n => n.title, show: n => link(n.title, () => choose_node_here(n)) },
      { title: 'attributes', text: true, of: n => n.attrs || '', show: n => el('code', {}, n.attrs && n.attrs.length > 120 ? n.attrs.slice(0, 119) + '…' : n.attrs || '') },
      { title: 'result', text: true, of: n => n.out.length ? n.out[0][1] : '', show: n => el('span', { class: 'type' }, n.out.length ? n.out[0][1] : '') }, { title: 'kernels', text: true, of: where }], D.nodes, { on: n => n.i === chosen.node })] };
}
const choose_node_here = n => choose({ node: n.i, kernel: n.k.length ? n.k[0] : -1 });

function errors_view() {
  /* "conv1#3": the label of the value and a number. */
  D.errors.forEach(e => { e.label = e.value.replace(/#\d+$/, ''); const m = maker.get(e.label); e.of = m === undefined ? -1 : m; });
  const known = D.errors.filter(e => e.abs !== undefined), most = Math.max(1e-30, ...known.map(e => e.rel || 0)), log = x => x > 0 ? Math.max(0.02, 1 + Math.log10(x / most) / 8) : 0;
  const wrong = known.filter(e => !e.ok).length;
  return { nodes: [el('p', { class: wrong ? 'warning' : 'note' }, `Engine ${D.engine} compared with the reference, value by value: ${group(known.length)} of ${group(D.errors.length)} are stored by the program, ${wrong ? group(wrong) + ' differ by more than is allowed.' : 'all within what is allowed.'} Bars are logarithmic.`),
    table([{ title: 'value', text: true, of: e => e.label, show: e => e.of >= 0 ? link(e.label, () => choose_node_here(D.nodes[e.of])) : e.label || '-' }, { title: 'node', text: true, of: e => e.node },
      { title: 'max rel', of: e => e.rel ?? -1, show: e => e.abs === undefined ? 'fused' : small(e.rel), bar: e => log(e.rel || 0) }, { title: 'max abs', of: e => e.abs ?? -1, show: e => e.abs === undefined ? '' : small(e.abs) },
      { title: 'ULP', of: e => e.ulp ?? -1, show: e => e.ulp === undefined ? '' : group(e.ulp) }, { title: 'cosine', of: e => e.cos ?? 2, show: e => e.cos === undefined ? '' : e.cos === null ? '-' : e.cos.toFixed(8) }], D.errors, { bad: e => e.ok === 0, on: e => e.of >= 0 && e.of === chosen.node })] };
}

function layers_view() {
  const Q = D.quantized, cap = Math.max(1, ...Q.layers.map(l => l.sqnr || 0));
  return { nodes: [el('p', { class: 'note' }, `${Q.method}: ${bytes(Q.after)}, before ${bytes(Q.before)}` + (Q.sqnr === null ? '' : `; outputs ${Q.sqnr.toFixed(1)} dB`) + '.'),
    table([{ title: 'layer', text: true, of: l => l.name }, { title: 'operator', text: true, of: l => l.op }, { title: 'SQNR dB', of: l => l.sqnr ?? -1, show: l => l.sqnr === null ? '-' : l.sqnr.toFixed(1), bar: l => (l.sqnr || 0) / cap },
      { title: 'MSE', of: l => l.mse ?? -1, show: l => small(l.mse) }, { title: 'max error', of: l => l.max ?? -1, show: l => small(l.max) }, { title: 'bytes', of: l => l.before, show: l => group(l.before) }, { title: 'now', of: l => l.after, show: l => group(l.after) }, { title: 'stays', text: true, of: l => l.stays }], Q.layers, {})] };
}

function messages_view() {
  return { nodes: D.messages.length ? D.messages.map(m => el('p', { class: 'warning' }, m)) : [el('p', { class: 'note' }, 'No warnings.')] };
}

/* ---- tabs ---- */

const TABS = [['graph', 'Graph', graph_view, true], ['memory', 'Memory', memory_view, true], ['kernels', 'Kernels', kernels_view, true], ['nodes', 'Nodes', nodes_view, true], ['sizes', 'Sizes', sizes_view, true],
  ['errors', 'Errors', errors_view, !!D.errors], ['layers', 'Layers', layers_view, !!D.quantized], ['messages', 'Warnings', messages_view, true]].filter(t => t[3]);
const made = {};
/* Draws the views again that show kernels, after repeats were collapsed or expanded. */
function rebuild() {
  for (const name of ['graph', 'kernels']) { delete made[name]; find('#view-' + name).replaceChildren(); }
  show_tab(TABS.find(([id]) => !find('#view-' + id).hidden)[0]);
}
function show_tab(name, focus) {
  for (const [id] of TABS) {
    const tab = find('#tab-' + id), is = id === name;
    tab.setAttribute('aria-selected', String(is));
    tab.tabIndex = is ? 0 : -1;
    find('#view-' + id).hidden = !is;
    if (is && focus) tab.focus();
  }
  if (!made[name]) {
    const v = made[name] = TABS.find(t => t[0] === name)[2](), box = find('#view-' + name);
    box.classList.toggle('full', !!v.full);
    box.append(...v.nodes.filter(x => x !== ''));
    if (v.shown) v.shown();
  }
}
function start() {
  const M = D.memory, B = D.bench;
  document.title = D.model + ' - ingot';
  find('#title').append(D.model, el('small', {}, `for ${D.target}`));
  const figures = [['kernels', group(D.kernels.length)], ['nodes', group(D.file_nodes || D.nodes.length)], D.parameters && ['parameters', count(D.parameters)], D.macs && ['multiply-adds', count(D.macs)],
    M.planned && ['arena', [bytes(M.arena), el('small', {}, M.bound && M.arena > M.bound ? ` ≥ ${bytes(M.bound)}` : '')]], ['weights', bytes(M.weights)], M.code && ['code', bytes(B ? B.text : M.code)],
    B ? ['time', [ms(B.p50), el('small', {}, B.gflops ? ` ${(2e-6 * D.kernels.reduce((s, k) => s + (k.did || 0), 0) / B.p50).toFixed(1)} of ${B.gflops.toFixed(0)} GFLOP/s` : '')]] : null,
    D.messages.length && ['warnings', group(D.messages.length)]].filter(Boolean);
  find('#figures').append(...figures.map(f => el('div', {}, el('dt', {}, f[0]), el('dd', {}, f[1]))));
  const go = (i, by) => show_tab(TABS[(i + by + TABS.length) % TABS.length][0], true);
  TABS.forEach(([id, title], i) => {
    find('#tabs').append(el('button', { id: 'tab-' + id, role: 'tab', type: 'button', 'aria-controls': 'view-' + id, onclick: () => show_tab(id),
      onkeydown: e => { if (e.key === 'ArrowRight') go(i, 1); else if (e.key === 'ArrowLeft') go(i, -1); } }, title + (id === 'messages' && D.messages.length ? ` (${D.messages.length})` : '')));
    find('#views').append(el('section', { id: 'view-' + id, class: 'view', role: 'tabpanel', 'aria-labelledby': 'tab-' + id, hidden: true }));
  });
  search();
  show_tab(D.errors ? 'errors' : D.quantized ? 'layers' : 'graph');
  detail();
}
start();
