/* machine.js - the tape as a picture: each tensor a small heat map, an arrow for each use. Forward runs left to right,
 * backward right to left, an arrow as thick as its gradient is large. It is built once for a lesson and a width; a step
 * only changes its classes. */
"use strict";

let machine = null; /* {lesson, nodes: Map tensor -> element, edges, scale, most} */
/* The last layouts, by the height of the labels: other numbers of the same shapes stand at the same places. */
let arrangement = { shapes: "", graphs: new Map() };

/* onclick: what a table does, if it does not lead to its step. */
function buildMachine(lesson = state.lesson, onclick = goToTensor) {
    document.body.classList.remove("tapeless"); /* what is hidden has no width */
    const graph = fittedGraph(lesson), { isCompact, label, scale } = graph;
    const world = el("div", { class: isCompact ? "world compact" : "world", "--label": label.height + "px",
        "--hit": 24 / scale + "px" });
    const lines = svg("svg", { class: "lines", width: graph.width, height: graph.height + 8, "aria-hidden": "true" });
    world.style.cssText += `;width:${graph.width}px;height:${graph.height + 8}px;transform:scale(${scale})`;
    world.append(lines);
    const edges = graph.edges.map(edge => drawEdge(lesson, graph, edge, lines)), nodes = new Map();
    for (const [number, n] of graph.nodes) {
        const t = lesson.tape.tensors[number], node = drawNode(lesson, t, n, label, onclick);
        nodes.set(t, node);
        world.append(node, ...(lesson === state.lesson ? drawOpener(t, n, label) : []));
    }
    const holder = el("div", { class: "holder" }, world);
    holder.style.cssText = `width:${graph.width * scale}px;height:${(graph.height + 8) * scale}px`;
    byId("picture").replaceChildren(holder);
    machine = { lesson, nodes, edges, scale, most: Math.max(0, ...edges.map(({ part }) => part?.weight ?? 0)) };
}

/* ---- the layout that fits ----------------------------------------------------------------------------------------- */

/* How high the picture may be: a share of the window, which is the same at every step, so that no step moves; so low that
 * each step of a lesson has room under it. */
const isFixed = () => isWide() && !isPresenting() && !isPlaying();
const mostHeight = () =>
    Math.max(120, innerHeight * (isNarrow() ? 0.27 : isPresenting() ? 0.25 : isPlaying() ? 0.2 : !isFixed() ? 0.285 : innerHeight < 850 ? 0.171 : 0.245));

const LOW = 0.55; /* the smallest scale of a low picture: its labels are 11 pixels high */

/* If the picture has to be small, its labels keep their size. In present mode names have 16 pixels or more, operations 13,
 * so that they are read from afar, and the columns take the whole width. */
function fittedGraph(lesson) {
    const isLarge = isPresenting() && !isPlaying(), pen = document.createElement("canvas").getContext("2d"),
        LEAST = isNarrow() ? 0.8 : isPlaying() ? 0.5 : isFixed() ? LOW : isLarge ? 0.6 : 0.66;
    const W = byId("picture").clientWidth - (isLarge ? 80 : 24); /* the name of the loss is wider than its table */
    pen.font = "12.5px serif";
    const below = (height, op) => t => (openable(lesson, t) ? height * 0.85 - 4 : t.unit ? op : 4);
    const labels = (height, op) => ({ height, below: below(height, op), width: t => Math.max(pen.measureText(plain(t.symbol)).width,
        pen.measureText(t.unit && !t.unit.isFold ? opName(t.unit.op) : "").width) * height / 15 + 6 });
    const most = mostHeight();
    const fitting = graph => Math.min(most / (graph.height + 8), W / graph.width, 1.5 * Math.max(1, enlarged()));
    const made = label => {
        const graph = arranged(lesson, label);
        spread(graph, 0, 24, 24);
        return graph;
    };
    let label = labels(15, 13), graph = made(label), scale = fitting(graph);
    const isCompact = scale < 0.9 || isLarge, [name, op] = isLarge ? [14.5 * enlarged(), 12.5 * enlarged()] : [15, 13];
    for (let n = 0, s; isCompact && n < (isLarge ? 5 : 1); n++) { /* larger labels leave less to the tables */
        s = Math.max(isLarge ? LEAST : 0.66, scale);
        label = labels(name / s, op / s);
        graph = made(label);
        scale = isLarge ? Math.max(s - 0.1, fitting(graph)) : fitting(graph);
    }
    scale = Math.max(scale, LEAST); /* smaller would be illegible: then it scrolls */
    spread(graph, W / scale, 24, isLarge ? Infinity : 78);
    return Object.assign(graph, { scale, isCompact, label });
}

/* A text that is the same for two lessons of which only numbers differ. */
function shapesOf({ units }) {
    const shape = t => [t.number, t.symbol, t.shape, !!t.grad];
    return JSON.stringify(units.map(({ inputs, result, lines }) => [inputs.map(t => t && shape(t)), shape(result), lines.length]));
}

/* The layout, taken from the last ones if only numbers changed. */
function arranged(lesson, label) {
    const shapes = shapesOf(lesson);
    if (arrangement.shapes !== shapes) arrangement = { shapes, graphs: new Map() };
    if (!arrangement.graphs.has(label.height)) arrangement.graphs.set(label.height, arrange(lesson.units, label));
    return arrangement.graphs.get(label.height);
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

function drawEdge(lesson, graph, edge, lines) {
    const t = lesson.tape.tensors[edge.tensor], unit = lesson.units[edge.unit], part = unit.parts.find(({ tensor }) => tensor === t);
    const points = pointsOf(graph, edge), path = svg("path", { d: curve(points, 0, 4), class: "edge" });
    const head = svg("path", { class: "head" }), flow = svg("path", { d: curve(points, 0, 0), class: "flow" });
    lines.append(path, head, flow);
    return { ...edge, t, unit, part, points, path, head, flow };
}

function drawNode(lesson, t, n, label, onclick) {
    const map = (kind, numbers) => el("span", { class: "map " + kind, "--w": n.box.w + "px", "--h": n.box.h + "px" },
        paint(lesson, t, n.box, numbers, kind), el("span", { class: "q" }, "?"));
    const op = t.unit && (t.unit.isFold ? "" : opName(t.unit.op));
    const node = el("button",
        { class: `node ${t.unit ? "" : "leaf"} ${n.box.isUnder ? "under" : ""} ${t.shape.length ? "" : "scalar"}`,
        tabindex: "-1", "data-t": t.number, onclick: () => onclick(t), onmouseenter: () => tip(t, node), onmouseleave: () => tip(null),
        onfocus: () => tip(t, node), onblur: () => tip(null) },
    el("span", { class: "name" }, nameEl(t.symbol, "span"), !t.shape.length && el("b", { class: "loss" })),
    el("span", { class: "maps" }, map("value", t.value), t.grad && map("grad", t.grad)),
    el("span", { class: "op", "--op": label.below(t) + "px" }, op));
    node.style.cssText += `;left:${n.x}px;top:${n.y - n.h / 2}px;height:${n.h}px`;
    return node;
}

/* The group of lines that ends with t, folded or not. */
const openable = (lesson, t) => (t.unit?.isFold && t.unit.group) || lesson.groups.find(each => isUnfolded(lesson, each) &&
    each.lines[each.lines.length - 1].result.number === t.number);

/* The button that unfolds a group of lines, or folds it again. */
function drawOpener(t, n, label) {
    const group = openable(state.lesson, t), folded = group && t.unit.isFold;
    if (!group) return [];
    const words = folded ? `open: ${group.lines.map(line => opName(line.op)).join(", ")}` : "fold these lines into one";
    const opener = el("button", { class: "opener", tabindex: "-1", title: words, "aria-label": words,
        onclick: () => toggleGroup(group) },
        el("span", {}, folded ? (group.isMoves ? group.name : `${group.lines.length} lines`) : "fold"));
    opener.style.cssText = `left:${n.x}px;top:${n.y + n.h / 2 - label.below(t) / 2 + 5}px`;
    return [opener];
}

/* The numbers of a tensor as colours, blue above 0, vermillion below; canvas.cells says where and how strong. */
function paint(lesson, t, box, numbers, kind) {
    const ratio = Math.min(3, (devicePixelRatio || 1) * 2),
        canvas = el("canvas", { width: Math.ceil(box.w * ratio), height: Math.ceil(box.h * ratio) });
    const pen = canvas.getContext("2d"), style = getComputedStyle(document.documentElement),
        get = name => style.getPropertyValue(name), empty = get("--cell"),
        colours = { "--pos": `rgb(${get("--pos")})`, "--neg": `rgb(${get("--neg")})`, "--grey": `rgb(${get("--grey")})` };
    canvas.cells = cellsOf(lesson, t, box, numbers, kind);
    pen.scale(ratio, ratio);
    for (const { at, colour, strength } of canvas.cells) {
        pen.fillStyle = empty;
        pen.fillRect(...at);
        pen.globalAlpha = strength;
        pen.fillStyle = colours[colour];
        pen.fillRect(...at);
        pen.globalAlpha = 1;
    }
    return canvas;
}

function cellsOf(lesson, t, { cw, ch, gap }, numbers, kind) {
    const line = cw >= 5 ? 1 : 0, isPlain = isWhole(t.type) && kind === "value",
        largest = largestOf(numbers.filter(x => Math.abs(x) <= 1e4)), top = kind === "grad" ? lesson.topGrad : lesson.topValue;
    return numbers.map((x, i) => {
        const p = Math.floor(i / (t.rows * t.columns)), r = Math.floor(i / t.columns) % t.rows, q = i % t.columns;
        return { at: [p * (t.columns * cw + gap) + q * cw, r * ch, cw - line, ch - line],
            colour: isPlain ? "--grey" : x > 0 ? "--pos" : "--neg",
            strength: isPlain ? (x ? 0.45 : 0) : strengthOf(x, Math.abs(x) > 1e4 ? Math.abs(x) : largest, top) };
    });
}

/* ---- a step ------------------------------------------------------------------------------------------------------- */

/* The tensor that a step computes: its value, or a gradient. */
const resultOf = step => (step.kind === "forward" ? step.unit.result : step.part ? step.part.tensor : step.tensor);

function updateMachine() {
    if (!machine) return;
    const { lesson } = machine, isHere = lesson === state.lesson, last = { kind: "all" };
    const n = isHere ? state.step : lesson.steps.length - 1, step = isHere ? lesson.steps[n] : last,
        isBack = n > lesson.forward;
    const hidden = isHere && isHiding() ? hiddenIn(step) : {};
    for (const [t, node] of machine.nodes) updateNode(t, node, step, n, isBack, hidden);
    const nodes = [...machine.nodes.values()];
    if (!nodes.some(node => node.tabIndex === 0)) nodes[0].tabIndex = 0;
    for (const edge of machine.edges) updateEdge(edge, step, n, isBack, hidden);
    follow();
}

/* What must not be seen of a step whose numbers are hidden: {t, kind}. */
function hiddenIn(step) {
    const { of, t } = readKey((state.asked || "").replace("*", "0")) || {};
    if (canPredict(step)) return { t: resultOf(step), kind: step.kind === "forward" ? "v" : "g" };
    return t ? { t, kind: of } : {};
}

function updateNode(t, node, step, n, isBack, hidden) {
    const isKnown = n > 0 ? t.valueStep <= n : !t.producer, isDone = t.gradStep <= n, isCurrent = resultOf(step) === t;
    const isSome = !isDone && t.grad && t.parts.some(part => part.step <= n), isHidden = hidden.t === t;
    const isRead = isSgd(step) || isLoop(step) ? !t.producer && t.grad : !isCurrent && step.unit && (step.kind === "forward"
        ? step.unit.inputs.includes(t) : step.unit.result === t);
    const classes = { known: isKnown, back: isBack && t.grad, "has-grad": isDone || isSome, some: isSome,
        current: isCurrent, reads: isRead,
        spoiled: isBack && machine.lesson === state.lesson && Controls.changedByRule(t) > 0,
        "secret-v": isHidden && hidden.kind === "v", "secret-g": isHidden && hidden.kind === "g" };
    for (const [name, on] of Object.entries(classes)) node.classList.toggle(name, !!on);
    const loss = node.querySelector(".loss");
    if (loss) loss.textContent = isKnown && !classes["secret-v"] ? " " + bare(t.value[0]) : "";
    const words = [plain(t.title), t.unit ? opName(t.unit.op) : "given", t.shape.join(" by ") || "one number",
        !isKnown && "not computed yet", isDone && "with its gradient"].filter(Boolean);
    node.setAttribute("aria-label", words.join(", "));
    node.tabIndex = isCurrent ? 0 : -1;
    if (isCurrent) node.setAttribute("aria-current", "step");
    else node.removeAttribute("aria-current");
}

function updateEdge(edge, step, n, isBack, hidden) {
    const { points, part, unit, path, head, flow } = edge, half = (t, node) => (isBack && t.grad ? node.box.mapW
        : node.box.w + 6) / 2;
    const isDone = unit.result.valueStep <= n && n > 0, isNow = step.kind === "forward" ? step.unit === unit
        : step.kind === "backward" && part && step.part === part;
    const isBehind = part && part.step <= n, isHidden = isNow && hidden.kind === "g";
    const width = isBehind && !isHidden ? 2 + 8 * part.weight / (machine.most || 1) : isNow ? 2.5 : isDone ? 1.6 : 1.2,
        size = 5 + width * 0.75;
    const look = `${isBehind ? "returned" : isDone ? "done" : "todo"} ${isNow ? "now" : ""}`, s = isBehind ? -1 : 1;
    points[0][0] = edge.from.x + half(edge.t, edge.from);
    points[points.length - 1][0] = edge.to.x - half(unit.result, edge.to);
    path.setAttribute("class", "edge " + look);
    path.setAttribute("d", curve(points, isBehind ? size : 0, isBehind ? 0 : 5));
    path.style.strokeWidth = width;
    const [x, y] = isBehind ? points[0] : points[points.length - 1];
    head.setAttribute("d", `M${x} ${y}l${-s * (size + 1)} ${-size * 0.72}v${size * 1.44}z`);
    head.setAttribute("class", "head " + look);
    flow.setAttribute("d", curve(points, 0, 0));
    flow.setAttribute("class", `flow ${isNow ? step.kind : ""}`);
    flow.style.strokeWidth = Math.max(2.4, Math.min(5, width * 0.5));
}

/* A picture that is wider than the window follows the current table. */
function follow() {
    const node = [...machine.nodes.values()].find(each => each.classList.contains("current")), box = byId("picture");
    const left = node && node.offsetLeft * machine.scale - box.clientWidth / 2;
    if (node && box.scrollWidth > box.clientWidth) box.scrollTo({ left, behavior: calm() ? "auto" : "smooth" });
    else if (!node) box.scrollLeft = 0;
}

function tip(t, node) {
    const box = byId("tip");
    box.hidden = !t;
    if (!t) return;
    const { unit } = t, inputs = unit ? [...new Set(unit.inputs)].filter(Boolean) : [];
    fill(box, nameEl(t.symbol, "b"), t.symbol !== t.title && [" = ", nameEl(t.title)],
        ` ${t.shape.join(" × ") || "one number"}`, el("br"),
        unit ? [opName(unit.op), " of ", listed(inputs.map(x => nameEl(x.symbol)))] : "given, not computed",
        t.parts.length > 1 && el("div", {}, `used ${t.parts.length} times`));
    const r = node.getBoundingClientRect();
    box.style.left = Math.max(8, Math.min(innerWidth - box.offsetWidth - 8, r.x + r.width / 2 - box.offsetWidth / 2)) + "px";
    box.style.top = r.bottom + scrollY + 6 + "px";
}

/* To the step that made this table, or its gradient. */
function goToTensor(t) {
    const { lesson } = state, isBack = state.step > lesson.forward && t.gradStep < Infinity;
    const uses = lesson.units.filter(unit => unit.inputs.includes(t)).map(unit => unit.result.valueStep);
    goTo(isBack ? t.gradStep : t.unit ? t.valueStep : Math.min(...uses));
}

/* Unfolds a group of lines, or folds it; the step stays, or the one that now stands for it. */
function toggleGroup(group) {
    const { open } = state.lesson;
    if (!open.delete(group.id)) open.add(group.id);
    planAgain();
    drawAgain();
}

function planAgain() {
    const { lesson } = state, { id } = stepNow();
    plan(lesson);
    state.step = Math.max(0, stepOf(lesson, id));
    buildMachine();
}

/* Up and down move among the tables. */
function moveInMachine(node, key) {
    const all = [...byId("picture").querySelectorAll(".node")],
        next = all[all.indexOf(node) + (key === "ArrowUp" ? -1 : 1)];
    if (next) next.focus();
}
