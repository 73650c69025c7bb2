/* plan.js - the steps that are shown. The library's plan has all steps: each group of lines folded into one, and line by
 * line. Here the page picks those of what is folded and unfolded now, and finds steps by their addresses. A step is one arrow
 * of the picture:
 *
 *     { kind: "cover", id: "0" }
 *     { kind: "forward", id: "f3", unit }            line 3 makes its result
 *     { kind: "start", id: "s", tensor, unit }       backward begins: dloss = 1
 *     { kind: "backward", id: "b3.0", unit, part }   a part of the gradient of line 3's input 0
 *     { kind: "add", id: "a3.0", unit, part }        this part is added to the parts before it
 *     { kind: "twice", id: "twice" }                 no arrow: backward again, and zeroing (loop.js)
 *     { kind: "sgd", id: "sgd" }                     nor is this: the numbers that learn take a step (sgd.js)
 *     { kind: "card", id: "card", lines }            nor is this: the gradients are written from memory (card.js)
 *
 * Steps are named by line and input, so their addresses hold when a group is unfolded. */
"use strict";

/* Does a group stand there line by line? */
const isUnfolded = (lesson, group) => lesson.open.has(group.id);

/* Sets lesson.units and lesson.steps, and the steps at which each tensor's value and gradient are complete. */
function plan(lesson) {
    const { allUnits, tape: { tensors } } = lesson, isShown = ({ group, isFold }) => !group || isUnfolded(lesson, group) !== isFold;
    for (const t of tensors) Object.assign(t, { valueStep: t.producer ? -1 : 0, gradStep: Infinity, unit: null, parts: [] });
    for (const part of allUnits.flatMap(unit => unit.parts)) part.step = Infinity; /* not that of an earlier plan */
    lesson.units = allUnits.filter(isShown);
    for (const unit of lesson.units) unit.result.unit = unit;
    lesson.steps = lesson.plan.steps.filter(({ kind, unit }) => !unit || kind === "start" || isShown(unit));
    lesson.forward = lesson.steps.filter(({ kind }) => kind === "forward").length;
    lesson.steps.forEach(placeStep);
    for (const { lines, result, parts } of lesson.units) for (const { result: t } of lines.slice(0, -1))
        Object.assign(t, { valueStep: result.valueStep, gradStep: parts.length ? parts[0].step : Infinity });
    measure(lesson);
}

function placeStep(step, n) {
    const { kind, unit, part, tensor } = step;
    step.id = step.at;
    if (kind === "forward") unit.result.valueStep = n;
    else if (tensor) tensor.gradStep = n;
    if (kind === "start") step.unit = tensor.unit;
    if (kind !== "backward") return;
    part.step = n;
    tensor.parts.push(part);
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

/* The step with this name. If its line is folded, the step that stands for it; -1 if there is none. */
function stepOf({ steps }, id) {
    const exact = steps.findIndex(step => step.id === id);
    const [, kind, line] = /^([fba])(\d+)/.exec(id || "") || [];
    if (exact >= 0 || !kind) return exact;
    const inside = letter => steps.findIndex(step => step.id[0] === letter && step.unit?.lines.some(each => each.line === Number(line)));
    const found = inside(kind);
    return found >= 0 ? found : kind === "a" ? inside("b") : found;
}

/* The steps that are new, with a bet or a question, and both ends: the library says which. */
const keySteps = ({ steps }) => new Set(steps.flatMap(({ key }, n) => (key ? n : [])));

/* Those that the reader goes through. */
const shownSteps = lesson => (state.keys ? [...keySteps(lesson)] : [...lesson.steps.keys()]);

/* "4 steps skipped, known from lessons 2 and 4: dS, …": those between this key step and the one before it; each leads to the step of an earlier lesson that has
 * its rule. */
function drawSkipped() {
    const { lesson: { steps }, step, keys } = state, passed = [], most = 4;
    for (let n = step - 1; keys && steps[step].key && !steps[n].key; n--) passed.unshift(steps[n]);
    const made = new Map(passed.map(each => [each.kind === "forward" ? each.tensor.title : each.tensor.gradient, each]));
    return passed.length > 0 && el("p", { class: "skipped" }, passed.length > 1 ? `${passed.length} steps` : "1 step", " skipped", knownLessons(passed), ": ",
        passed.every(({ moves }) => moves) ? "moves" : [listed([...made].slice(0, most).map(([name, each]) => linkToKnown(each, nameEl(name)))), made.size > most && ", …"]);
}

/* ", known from lessons 2 and 4" */
function knownLessons(passed) {
    const names = [...new Set(passed.filter(isLinked).map(knownFrom))].sort();
    return names.length > 0 && `, known from lesson${names.length > 1 ? "s" : ""} ${names.join(", ").replace(/, (?!.*,)/, " and ")}`;
}

/* Words that lead to the step of an earlier lesson which has the rule of this one, if the page has that lesson. */
const knownFrom = ({ as = "" }) => as.split("/")[0];
const isLinked = step => lessons.some(({ name }) => name === knownFrom(step));
const linkToKnown = (step, words) => (isLinked(step) ? el("a", { href: "#" + step.as, title: `as in lesson ${knownFrom(step)}` }, words) : words);

/* At a step whose rule is known. */
const drawKnown = step => step.as && el("p", { class: "known" }, linkToKnown(step, `The rule is that of lesson ${knownFrom(step)}.`));

/* The names of the steps as addresses counted them before steps had names: a step for each line forward, the start, then
 * a step for each line backward, and one for each addition. */
function countedSteps({ plan: { steps }, allUnits }) {
    const single = allUnits.filter(({ isFold }) => !isFold), starts = steps.filter(({ kind }) => kind === "start").map(() => "s");
    const all = single.flatMap(({ parts }) => parts), isSum = t => all.filter(({ tensor }) => tensor === t).length > 1;
    const isFirst = (part, n, parts) => parts.findIndex(({ tensor }) => tensor === part.tensor) === n;
    const backward = ({ line, parts }) => [...parts.slice(0, 1).map(({ k }) => `b${line}.${k}`),
        ...parts.filter(isFirst).filter(({ tensor }) => isSum(tensor)).map(({ k }) => `a${line}.${k}`)];
    return [...single.map(({ line }) => "f" + line), ...starts, ...single.slice().reverse().flatMap(backward)];
}

/* The same for what a reader goes through: "backward 3 of 6" where known steps are skipped. */
function countOf(lesson, n) {
    const { steps, forward } = lesson, isForward = n <= forward, some = [...keySteps(lesson)].filter(m => steps[m].unit && m <= forward === isForward);
    return !state.keys || state.printing || !steps[n].unit ? phaseOf(lesson, n)
        : `${isForward ? "forward" : "backward"} ${Math.max(1, some.filter(m => m <= n).length)} of ${some.length}`;
}

const phases = { cover: "start", twice: "again", sgd: "the step", card: "the card" };
const phaseOf = ({ forward, steps }, n) => phases[steps[n].kind] || (n <= forward ? `forward ${n} of ${forward}`
    : `backward ${n - forward} of ${steps.filter(({ unit }) => unit).length - forward}`);
