/* data.js - the recorded computation: lessons, lines, tensors, and the plan of the steps.
 *
 * The tape holds every number: the value and the gradient of each tensor, and for each input x of each line the Jacobian of
 * the line's result y. What follows from them, the library's C has worked out: which steps there are, what each shows, what
 * each number is made of, and why one is 0 ("plan": see plan_json.h). Here numbers become references. */
"use strict";

const sum = list => list.reduce((a, b) => a + b, 0);

/* Replaces the numbers of tensors, lines and units, in a lesson's JSON, by references. */
function connect(lesson) {
    const { plan, tape: { lines, tensors } } = lesson;
    tensors.forEach((t, number) => Object.assign(t, {
        number,
        value: t.value.map(Number), /* the strings "NaN" and "Infinity", too */
        grad: t.grad && t.grad.map(Number),
        ...dimensions(t.shape),
        uses: [], /* the lines that read it */
        ...namesOf(plan.tensors[number]),
        zeros: { v: reasonsIn(plan, plan.tensors[number].value), g: reasonsIn(plan, plan.tensors[number].grad) },
    }));
    for (const line of lines) {
        line.result = tensors[line.out];
        line.result.producer = line;
        line.inputs = line.in.map(t => (t < 0 ? null : tensors[t]));
        for (const t of new Set(line.inputs)) if (t) t.uses.push(line);
    }
    connectPlan(lesson);
    for (const { tensor, of } of lesson.transposed || []) {
        tensors[tensor].twin = tensors[of];
        tensors[of].twin ??= tensors[tensor];
    }
    for (const { tensor, rows, columns } of lesson.labels || []) tensors[tensor].words = { rows, columns };
    lesson.name ??= String(lesson.number ?? 0) + (lesson.part || ""); /* in the address */
    lesson.open = new Set();  /* the names of the groups of lines that are unfolded */
    return lesson;
}

/* The plan says a symbol that is not the name, and a gradient that is not "d" and the symbol. */
const namesOf = ({ name, symbol = name, gradient = "d" + symbol }) => ({ title: name, symbol, gradient });

/* The last two dimensions are rows and columns; the dimensions before them are panels. */
function dimensions(shape) {
    const [rows, columns] = [1, 1, ...shape].slice(-2);
    return { rows, columns, panels: shape.slice(0, -2).reduce((a, b) => a * b, 1) };
}

/* Element -> why it is 0, from a list of elements and numbers of reasons. */
const reasonsIn = ({ reasons }, list = []) =>
    new Map(Array.from({ length: list.length / 2 }, (_, n) => [list[2 * n], reasons[list[2 * n + 1]]]));

/* A unit is a line of the tape, or a folded group: {lines, line, result, inputs, op, moves, group, isFold, parts}. The plan has
 * a group folded, then line by line. */
function unitOf({ plan, groups, tape: { lines } }, { lines: [first, last], group, name, moves, parts }) {
    const list = lines.slice(first, last + 1), end = lines[last], isFold = name !== undefined;
    const outside = list.flatMap(line => line.inputs).filter(t => t && !list.some(line => line.result === t));
    if (isFold) groups[group] = { name: name || `${list.length} moves`, lines: list, isMoves: !!moves,
        id: list.map(line => line.line).join(".") };
    return { ...end, lines: list, op: list.map(line => line.op).join(", "), moves, isFold, group: groups[group] || null,
        inputs: isFold ? [...new Set(outside)] : end.inputs, parts: parts.map(part => partOf(plan, lines[first], part)) };
}

/* What a unit adds to the gradient of an input: {line, k, tensor, dx, zeros, jacobian}, of its first line. In `jacobian` a
 * column, of an element of x, is [element of y, derivative, ...]. */
const partOf = (plan, line, { input: k, zeros, ...more }) => ({ ...more, line, k, tensor: line.inputs[k],
    dx: (line.backward[k].dx || line.inputs[k].grad).map(Number), zeros: reasonsIn(plan, zeros) });

function connectPlan(lesson) {
    lesson.groups = []; /* of lines that can be folded */
    lesson.allUnits = lesson.plan.units.map(unit => unitOf(lesson, unit));
    for (const { isFold, lines, parts } of lesson.allUnits) if (!isFold) lines[0].parts = parts;
    for (const step of lesson.plan.steps) {
        step.text ??= lesson.notes.get(step.at);
        step.sentence ??= step.nudge?.says.at(-1);
        if (step.unit === undefined) continue;
        step.unit = lesson.allUnits[step.unit];
        step.tensor = lesson.tape.tensors[step.tensor];
        step.part = step.unit.parts[step.part];
    }
}

/* The elements of y that element `index` of input k of a line reaches. */
const reachedBy = ({ parts }, k, index) => parts.find(part => part.k === k).jacobian[index].filter((_, n) => n % 2 === 0);

/* The index of element i, row-major. */
function indexOf(shape, i) {
    const index = [];
    for (const n of shape.slice().reverse()) {
        index.unshift(i % n);
        i = Math.floor(i / n);
    }
    return index;
}
