/* plan.js - the steps of a lesson. A step is one arrow of the picture:
 *
 *     { kind: "cover", id: "0" }
 *     { kind: "forward", id: "f3", unit }            line 3 makes its result
 *     { kind: "start", id: "s", tensor, unit }       backward begins: dloss = 1
 *     { kind: "backward", id: "b3.0", unit, part }   a part of the gradient of line 3's input 0
 *     { kind: "add", id: "a3.0", unit, part, tensor, done }   this part is added to the parts before it
 *
 * A unit is a line of the tape, or several lines that are folded into one: a chain of moves, which is found here, or lines
 * that the lesson names ("fold"). Steps are named by line and input, so their addresses hold when a group is unfolded. */
"use strict";

/* ---- groups of lines ---------------------------------------------------------------------------------------------- */

/* Chains of lines that only move numbers: consecutive, each used once, by the next. */
function chainsOf(lines) {
    const chains = [];
    let chain = [];
    const close = () => {
        if (chain.length > 1) chains.push(chain);
        chain = [];
    };
    for (const line of lines) {
        const isMove = line.moves && line.inputs.filter(Boolean).length === 1, last = chain[chain.length - 1];
        const goesOn = isMove && last && line.inputs[0] === last.result && last.result.uses.length === 1;
        if (!goesOn) close();
        if (isMove) chain.push(line);
    }
    close();
    return chains.map(list => ({ lines: list, name: `${list.length} moves`, isMoves: true }));
}

/* The lesson's own groups: lines that follow each other, whose results but the last are used inside only. */
function namedGroups({ fold = [], tape: { lines } }) {
    const groups = fold.map(({ lines: numbers, name }) =>
        ({ name, lines: numbers.map(n => lines.find(line => line.line === n)).filter(Boolean) }));
    const isWhole = ({ lines: list }) => list.length > 1 && list.slice(0, -1).every((line, n) =>
        lines.indexOf(list[n + 1]) === lines.indexOf(line) + 1 && line.result.uses.every(use => list.includes(use)));
    return groups.filter(isWhole);
}

function groupsOf(lesson) {
    const named = namedGroups(lesson), taken = new Set(named.flatMap(({ lines }) => lines));
    const chains = chainsOf(lesson.tape.lines).filter(({ lines }) => !lines.some(line => taken.has(line)));
    return [...named, ...chains].map(group => ({ ...group, id: group.lines.map(line => line.line).join(".") }));
}

/* The Jacobians of a group's result by each of its inputs from outside: J of the last line, times those before it. */
function composed({ lines }) {
    const last = lines[lines.length - 1], byTensor = new Map();
    byTensor.set(last.result, last.result.value.map((_, j) => new Map([[j, 1]])));
    const parts = [];
    for (const line of lines.slice().reverse()) for (const part of line.parts) {
        const isInside = lines.some(each => each.result === part.tensor), outer = byTensor.get(line.result);
        const before = isInside && byTensor.get(part.tensor), rows = before || last.result.value.map(() => new Map());
        outer.forEach((row, j) => row.forEach((J, n) => part.rows[n].forEach(([i, more]) =>
            rows[j].set(i, (rows[j].get(i) || 0) + J * more))));
        if (isInside) byTensor.set(part.tensor, rows);
        else parts.push({ part, rows: rows.map(row => [...row]) });
    }
    return parts;
}

/* The unit that stands for a group. Its parts are called by the line and the input where they leave the group. */
function foldOf(group) {
    const { lines, isMoves } = group, first = lines[0], last = lines[lines.length - 1];
    const inputs = lines.flatMap(line => line.inputs).filter(t => t && !lines.some(line => line.result === t));
    const moves = isMoves && last.moves.map(({ i }) => {
        for (const line of lines.slice(0, -1).reverse()) i = line.moves[i].i;
        return { k: first.moves[0].k, i };
    });
    const unit = { ...last, group, lines, op: lines.map(line => line.op).join(", "), inputs: [...new Set(inputs)],
        moves: moves || null, view: lines.every(line => line.view), product: null, parts: [] };
    const worst = Math.max(...lines.flatMap(line => line.parts.map(part =>
        (part.worst === part.worst ? part.worst : Infinity))));
    const unchecked = sum(lines.flatMap(line => line.parts.map(part => part.unchecked)));
    const parts = isMoves && first.parts.length ? [{ part: first.parts[0], rows: moves.map(({ i }) => [[i, 1]]) }]
        : isMoves ? [] : composed(group);
    unit.parts = parts.map(({ part, rows }) => {
        const columns = part.tensor.value.map(() => []);
        rows.forEach((row, j) => row.forEach(([i, J]) => J !== 0 && columns[i].push([j, J])));
        return { ...part, line: unit, from: part.line, rows, columns, worst, unchecked, copies: null, rowwise: false,
            rowsCancel: false, factor: 0, origin: part };
    });
    return unit;
}

/* ---- the plan ----------------------------------------------------------------------------------------------------- */

/* Sets lesson.units and lesson.steps, and the steps at which each tensor's value and gradient are complete. */
function plan(lesson) {
    const { lines, tensors } = lesson.tape, units = [];
    keepStructure(lesson);
    lesson.groups ??= groupsOf(lesson);
    for (const line of lines) {
        const group = lesson.groups.find(each => each.lines.includes(line) && !lesson.open.has(each.id));
        line.lines = [line];
        line.product ??= productOf(line);
        if (!group) units.push(line);
        else if (line === group.lines[group.lines.length - 1]) units.push(foldOf(group));
    }
    for (const t of tensors) Object.assign(t, { valueStep: t.producer ? -1 : 0, gradStep: Infinity, unit: null });
    for (const part of lines.flatMap(line => line.parts)) part.step = Infinity; /* not that of an earlier plan */
    lesson.units = units;
    lesson.steps = stepsOf(lesson);
    for (const { group, lines: list, result, parts } of units) if (group) for (const { result: t } of list.slice(0, -1))
        Object.assign(t, { valueStep: result.valueStep, gradStep: parts.length ? parts[0].step : Infinity });
    measure(lesson);
}

function stepsOf(lesson) {
    const steps = [{ kind: "cover", id: "0" }], { tensors } = lesson.tape;
    for (const unit of lesson.units) {
        unit.result.unit = unit;
        unit.result.valueStep = steps.push({ kind: "forward", unit, id: "f" + unit.line }) - 1;
    }
    lesson.forward = steps.length - 1;
    tensors.filter(t => t.unit && t.grad && !t.parts.length).forEach((tensor, n) => {
        tensor.gradStep = steps.push({ kind: "start", tensor, unit: tensor.unit, id: "s" + (n || "") }) - 1;
    });
    for (const unit of lesson.units.slice().reverse()) for (const part of unit.parts) {
        const { tensor } = part, id = `${(part.from || unit).line}.${part.k}`;
        part.kind = !unit.group && isWrong(plantedFor(lesson, part)) ? kindOfPlanted(part, unit) : kindOf(part, unit);
        part.step = tensor.gradStep = steps.push({ kind: "backward", unit, part, id: "b" + id }) - 1;
        if (part.origin) Object.assign(part.origin, { step: part.step, kind: part.kind });
        const done = tensor.parts.filter(each => each.step <= part.step);
        if (done.length > 1)
            tensor.gradStep = steps.push({ kind: "add", unit, part, tensor, done, id: "a" + id }) - 1;
    }
    return steps;
}

/* How thick an arrow is, and the largest numbers of the lesson, for the strength of colours. */
function measure(lesson) {
    const { tensors } = lesson.tape, parts = lesson.units.flatMap(unit => unit.parts);
    const norm = ({ dx }) => Math.hypot(...dx.filter(Number.isFinite)), most = Math.max(1e-300, ...parts.map(norm));
    for (const part of parts) part.weight = Math.sqrt(norm(part) / most);
    const top = lists => Math.max(1e-300, ...lists.flat().map(Math.abs).filter(x => x < 1e4));
    lesson.topValue = top(tensors.filter(t => !isWhole(t.type)).map(t => t.value));
    lesson.topGrad = top(tensors.filter(t => t.grad).map(t => t.grad));
}

/* ---- names of steps ----------------------------------------------------------------------------------------------- */

const linesOf = step => (step.unit ? step.unit.lines.map(line => line.line) : []);

/* The step with this name. If its line is folded, the step that stands for it; -1 if there is none. */
function stepOf({ steps }, id) {
    const exact = steps.findIndex(step => step.id === id);
    const [, kind, line] = /^([fba])(\d+)/.exec(id || "") || [];
    if (exact >= 0 || !kind) return exact;
    const inside = letter => steps.findIndex(step => step.id[0] === letter && linesOf(step).includes(Number(line)));
    const found = inside(kind);
    return found >= 0 ? found : kind === "a" ? inside("b") : found;
}

/* The steps of a short class: those that the lesson names ("key"), with a bet or a question, and both ends. */
function keySteps(lesson) {
    const { steps, key = [], bet, questions = [] } = lesson, last = steps.length - 1;
    const asked = questions.map(question => (question.at ? stepOf(lesson, question.at) : -1));
    return new Set([0, last, ...[...key, bet && bet.at].map(id => stepOf(lesson, id)), ...asked].filter(n => n >= 0));
}

/* The names of the steps as addresses counted them before steps had names: a step for each line forward, the start, then
 * a step for each line backward, and one for each addition. */
function countedSteps({ tape: { lines, tensors } }) {
    const ids = lines.map(line => "f" + line.line);
    for (const t of tensors) if (t.producer && t.grad && !t.parts.length) ids.push("s");
    for (const line of lines.slice().reverse()) if (line.parts.length) {
        ids.push(`b${line.line}.${line.parts[0].k}`);
        for (const t of new Set(line.parts.map(part => part.tensor))) if (t.parts.length > 1)
            ids.push(`a${line.line}.${line.parts.find(part => part.tensor === t).k}`);
    }
    return ids;
}

const phaseOf = ({ forward, steps }, n) => (n === 0 ? "start" : n <= forward ? `forward ${n} of ${forward}`
    : `backward ${n - forward} of ${steps.length - 1 - forward}`);
