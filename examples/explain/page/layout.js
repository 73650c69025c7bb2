/* layout.js - where the picture of the tape places its tables: layers, order, heights, paths.
 *
 *   - A result is one layer right of its inputs; what was given is one layer left of its first use.
 *   - An arrow over several layers has a narrow place in each, which arrows from the same table share.
 *   - Order in a layer: depth first from the last result, then sweeps by the mean place of the neighbours; the order with
 *     the fewest crossings is kept.
 *   - Heights: each layer in turn takes the heights nearest to its neighbours' that keep order and distance. */
"use strict";

const LANE = 12; /* pixels between two tables of a layer */

/* Sizes of a tensor's small tables in pixels: cw and ch a cell, gap between panels, w and h the value; both the value and
 * its gradient, side by side or under each other. A cell of a large table is smaller than a pixel. */
function boxOf(t) {
    const columns = t.panels * t.columns, c = Math.min(9, Math.floor(48 / columns), Math.floor(34 / t.rows));
    const cw = Math.max(c, Math.min(1, Math.max(5, 60 - 3 * t.panels) / columns)), ch = Math.max(c, Math.min(1, 48 / t.rows)), gap = cw >= 1 ? 3 : 3 * cw;
    const own = t.shape.length ? { cw, ch, gap, w: columns * cw + (t.panels - 1) * gap, h: t.rows * ch }
        : { cw: 24, ch: 24, gap: 0, w: 24, h: 24 };
    const isUnder = own.w >= 1.5 * own.h && t.shape.length > 0;
    const both = !t.grad ? own : isUnder ? { w: own.w, h: 2 * own.h + 4 } : { w: 2 * own.w + 4, h: own.h };
    return { ...own, isUnder, mapW: both.w + 6, mapH: both.h + 6 };
}

/* The graph: nodes, by the numbers of their tensors, and an edge for each table that a unit reads, {tensor, unit}, two
 * numbers. label: {height, width(t), below(t)} of the words at a node. */
function arrange(units, label) {
    const layerOf = layersOf(units), nodes = new Map();
    for (const [t, layer] of layerOf) {
        const box = boxOf(t), w = Math.max(box.mapW, Math.min(label.width(t), 110)), below = label.below(t);
        nodes.set(t, { layer, box, w, h: box.mapH + label.height + below, shift: (label.height - below) / 2,
            before: [], after: [], y: 0 });
    }
    const { edges, all } = edgesOf(units, nodes), last = nodes.get(units[units.length - 1].result);
    const layers = orderOf(all, last);
    placeHeights(layers);
    const top = Math.min(...all.map(n => n.y - n.h / 2)), height = Math.max(...all.map(n => n.y + n.h / 2)) - top;
    for (const n of all) n.y -= top;
    return { layers, nodes: new Map([...nodes].map(([t, n]) => [t.number, n])), edges, height };
}

function layersOf(units) {
    const layerOf = new Map();
    for (const unit of units) {
        const before = unit.inputs.filter(t => t && layerOf.has(t)).map(t => layerOf.get(t));
        layerOf.set(unit.result, 1 + Math.max(0, ...before));
    }
    for (const unit of units) for (const t of unit.inputs) if (t && !t.unit) {
        const first = layerOf.get(unit.result) - 1;
        layerOf.set(t, Math.min(first, layerOf.get(t) ?? first));
    }
    return layerOf;
}

/* The weight of a link says how much it wants to be straight. */
function edgesOf(units, nodes) {
    const edges = [], all = [...nodes.values()], narrow = new Map();
    const link = (a, b, weight) => {
        a.after.push([b, weight]);
        b.before.push([a, weight]);
    };
    for (const unit of units) for (const t of new Set(unit.inputs.filter(Boolean))) {
        const from = nodes.get(t), to = nodes.get(unit.result), via = [];
        let last = from;
        for (let layer = from.layer + 1; layer < to.layer; layer++) {
            const key = t.number + "." + layer;
            if (!narrow.has(key)) {
                const node = { isNarrow: true, layer, w: 0, h: 6, before: [], after: [], y: 0 };
                narrow.set(key, node);
                all.push(node);
                link(last, node, last.isNarrow ? 8 : 2);
            }
            last = narrow.get(key);
            via.push(last);
        }
        link(last, to, last.isNarrow ? 2 : !t.unit ? 0.5 : unit.inputs.find(x => x && x.unit) === t ? 4 : 1);
        edges.push({ tensor: t.number, unit: units.indexOf(unit), from, to, via });
    }
    return { edges, all };
}

function orderOf(all, last) {
    const layers = range(1 + Math.max(...all.map(n => n.layer)), () => []), seen = new Set();
    function visit(n) {
        if (seen.has(n)) return;
        seen.add(n);
        for (const [m] of n.before) visit(m);
        layers[n.layer].push(n);
    }
    visit(last);
    for (const n of all) visit(n);
    let best = layers.map(layer => layer.slice()), fewest = crossings(layers);
    for (let sweep = 0; sweep < 24 && fewest > 0; sweep++) {
        const isForward = sweep % 2 === 0;
        for (const layer of isForward ? layers : layers.slice().reverse()) sortLayer(layers, layer, isForward);
        const now = crossings(layers);
        if (now < fewest) {
            fewest = now;
            best = layers.map(each => each.slice());
        }
    }
    return best;
}

function numberLayers(layers) {
    for (const layer of layers) layer.forEach((n, i) => (n.place = i));
}

function crossings(layers) {
    let count = 0;
    numberLayers(layers);
    for (const layer of layers) {
        const lines = layer.flatMap(n => n.after.map(([m]) => [n.place, m.place]));
        for (let a = 0; a < lines.length; a++) for (let b = a + 1; b < lines.length; b++)
            if ((lines[a][0] - lines[b][0]) * (lines[a][1] - lines[b][1]) < 0) count++;
    }
    return count;
}

/* Sorts a layer by the mean place of its neighbours, as a share of their layers. */
function sortLayer(layers, layer, isForward) {
    numberLayers(layers);
    const share = m => m.place / Math.max(1, layers[m.layer].length - 1);
    const wish = new Map(layer.map((n, i) => {
        const next = isForward ? n.before : n.after;
        return [n, next.length ? sum(next.map(([m]) => share(m))) / next.length : i / Math.max(1, layer.length - 1)];
    }));
    layer.sort((a, b) => wish.get(a) - wish.get(b));
}

/* Isotonic regression, layer by layer: neighbours that would overlap become a block, which takes its mean wish. */
function placeHeights(layers) {
    const ROUNDS = 160, SETTLED = 40;
    for (const layer of layers) layer.reduce((y, n) => {
        n.y = y + n.h / 2;
        return y + n.h + LANE;
    }, 0);
    for (let round = 0; round < ROUNDS; round++) {
        const isForward = round % 2 === 0;
        for (const layer of isForward ? layers : layers.slice().reverse())
            placeLayer(layer, n => (round > SETTLED ? [...n.before, ...n.after] : isForward ? n.before : n.after));
    }
}

function placeLayer(layer, neighbours) {
    const mean = block => block.sum / block.weight, blocks = [];
    let offset = 0;
    layer.forEach((n, i) => {
        if (i) offset += (layer[i - 1].h + n.h) / 2 + LANE;
        n.offset = offset;
        const next = neighbours(n), total = sum(next.map(([, w]) => w)), weight = total || 0.1;
        const wish = total ? sum(next.map(([m, w]) => m.y * w)) / total : n.y;
        blocks.push({ sum: (wish - offset) * weight, weight, list: [n] });
        while (blocks.length > 1 && mean(blocks[blocks.length - 2]) >= mean(blocks[blocks.length - 1])) {
            const b = blocks.pop(), a = blocks[blocks.length - 1];
            Object.assign(a, { sum: a.sum + b.sum, weight: a.weight + b.weight, list: [...a.list, ...b.list] });
        }
    });
    for (const block of blocks) for (const n of block.list) n.y = mean(block) + n.offset;
}

/* Columns of equal gaps, from `least` to `most` pixels, as wide as there is room for. */
function spread(graph, width, least, most) {
    const widths = graph.layers.map(layer => Math.max(8, ...layer.map(n => n.w)));
    const gap = Math.max(least, Math.min(most, (width - sum(widths)) / Math.max(1, widths.length - 1)));
    let x = 0;
    graph.layers.forEach((layer, l) => {
        for (const n of layer) Object.assign(n, { x: x + widths[l] / 2, left: x, right: x + widths[l] });
        x += widths[l] + gap;
    });
    graph.width = x - gap;
}

/* The points of an edge from the right side of its table to the left side of the result, level through each layer. */
function pointsOf(graph, edge) {
    const { from, to, via } = edge, before = ({ via: list, from: first }) => (list[list.length - 1] || first).y;
    const siblings = graph.edges.filter(each => each.to === to).sort((a, b) => before(a) - before(b));
    const room = Math.min(9, (to.box.mapH - 8) / Math.max(1, siblings.length - 1));
    const y = to.y + to.shift + (siblings.indexOf(edge) - (siblings.length - 1) / 2) * room;
    return [[from.x + from.box.mapW / 2, from.y + from.shift], ...via.flatMap(n => [[n.left, n.y], [n.right, n.y]]),
        [to.x - to.box.mapW / 2, y]];
}

/* A path through points, shorter by so many pixels at its start and its end. */
function curve(points, startCut, endCut) {
    const p = points.map(point => point.slice()), n = x => x.toFixed(1);
    p[0][0] += startCut;
    p[p.length - 1][0] -= endCut;
    return p.map(([x, y], i) => {
        if (i === 0) return `M${n(x)} ${n(y)}`;
        const [xa, ya] = p[i - 1], middle = (xa + x) / 2;
        return Math.abs(ya - y) < 0.5 ? `L${n(x)} ${n(y)}`
            : `C${n(middle)} ${n(ya)} ${n(middle)} ${n(y)} ${n(x)} ${n(y)}`;
    }).join("");
}
