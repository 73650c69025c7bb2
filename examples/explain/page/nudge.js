/* nudge.js - a number is moved before its rule is said. A step of backward can have several looks: at what moves with one of
 * its numbers, of softmax at how this adds up to the rule, and last at the rule, its tables. The look stands in the address,
 * "#2/b3.0.3"; a link with a number shows the rule.
 *
 * The slider picks among changes that were asked for at once, when its number was chosen: in a lesson all of it is run again
 * (probe), of a tape the op of the line (nudge.h). Without the library there is one recorded nudge. What is predicted
 * are C's derivatives, those of a planted rule, too. */
"use strict";

const LOOKS = [["nudge", 1], ["add up", 3], ["the rule", 4]]; /* of softmax, and their places in an address: it had four looks once */
const NUDGES = 41, STILL = 20, FIRST_NUDGE = 26, RECORDED_NUDGE = 0.3; /* from -1 to 1, of which the one in the middle moves nothing */
const MOST_MOVED = 8, FEW_MOVED = 6; /* numbers in lines of their own; if there are more, the largest ones */

/* ---- looks -------------------------------------------------------------------------------------------------------- */

const looksWithPlaces = step => (!step.nudge ? [] : !isOfWeights(step) ? [["nudge", 1], ["rule", 2]] : step.algebra ? LOOKS : [LOOKS[0], LOOKS[2]]);
const looksOf = step => looksWithPlaces(step).map(([name]) => name);
const isOfWeights = step => step.nudge?.kind === "softmax";

/* The first step of each kind begins with a nudge; a single number is nudged on demand. */
function firstLook(step = stepNow()) {
    const like = each => each.nudge && each.nudge.kind === step.nudge?.kind;
    const isFirst = step.nudge?.kind !== "each" && state.lesson.steps.find(like) === step;
    return isFirst && !state.keys && !state.chosen && !plantedAt(step) ? 1 : LOOKS.length;
}

const lookWanted = () => Math.min(state.look, looksOf(stepNow()).length);
const isRuleWanted = (step = stepNow()) => state.compare || isTrying() || state.printing || (state.look > 1 && isRuleHidden(step)) || /* they would tell it */
    (!isOfWeights(step) && !!plantedAt(step));
const lookNow = () => (isRuleWanted() ? looksOf(stepNow()).length : lookWanted());
const isNudging = () => lookNow() < looksOf(stepNow()).length;

function setLook(n) {
    state.look = n;
    drawAgain();
}

/* One look on; false at the last one. */
function lookOn() {
    if (!isNudging()) return false;
    setLook(isRuleHidden(stepNow()) ? looksOf(stepNow()).length : lookNow() + 1);
    return true;
}

/* One look back, where the reader has come by the looks before; false at the first one. */
function lookBack() {
    if (state.look === Infinity || lookNow() <= firstLook()) return false;
    setLook(isRuleHidden(stepNow()) ? 1 : lookNow() - 1);
    return true;
}

/* A choice can be asked beside a nudge of weights; what is answered in the table waits for the rule. */
const asksBeside = () => isOfWeights(stepNow()) && questionsNow().length > 0 &&
    questionsNow().every(({ question }) => question.kind === "choice");

/* ".3" in the address, unless a link without it leads to the same look; and the look that it means. */
const lookSuffix = () => (looksOf(stepNow()).length && lookWanted() !== Math.min(firstLook(), looksOf(stepNow()).length) ? "." + looksWithPlaces(stepNow())[lookWanted() - 1][1] : "");
const lookAt = place => Math.max(1, looksWithPlaces(stepNow()).filter(([, first]) => first <= place).length);

function drawLooks(step) {
    const looks = looksOf(step).map((name, n) => (isOfWeights(step) ? `${n + 1} ${name}` : name));
    return looks.length > 0 && !isRuleHidden(step) && !state.compare &&
        drawChoice("heads looks", looks, "looks at this step", lookNow() - 1, n => setLook(n + 1));
}

/* ---- what moves --------------------------------------------------------------------------------------------------- */

/* The number that is nudged: the one that is chosen, or that the step is about. Of softmax only the library can say more. */
function nudgedElement(step) {
    const { part, look, most } = step, { t, i } = readKey(state.chosen) || {};
    return t === part.tensor && (Controls.isLive() || !isOfWeights(step)) ? i : look ?? most;
}

/* Other scores for the row of a softmax, at this step. */
const PRESETS = ["equal_scores", "one_takes_all"];
let preset = null;
const presetNow = () => (Controls.isLive() && preset?.step === stepNow() ? preset.op : "");

/* A product's terms name what the number meets, and the element j of the result that it moves there. */
function metBy({ items, cells, form }, i) {
    const views = items.map(itemOf), order = [...form.matchAll(/@(\d+)/g)].map(([, n]) => views[n].table);
    const numbers = cells[i].filter(n => n >= 0), [dy, other] = order[0].of === "g" ? [0, 1] : [1, 0];
    return range(numbers.length / 2, n => {
        const index = numbers[2 * n + other], { t, numbers: values } = order[other];
        return { j: numbers[2 * n + dy], met: [t, index], rate: values[index] };
    });
}

/* The numbers of y that move, {j, rate}: how much each gains per nudge. Of a softmax the whole row. */
function movedBy(step, i) {
    const { part: { jacobian, line: { result } } } = step, C = result.columns;
    if (step.nudge.kind === "product") return metBy(step, i);
    const rates = new Map(range(jacobian[i].length / 2, n => [jacobian[i][2 * n], Number(jacobian[i][2 * n + 1])]));
    const list = isOfWeights(step) ? range(C, c => i - i % C + c) : rates.size ? [...rates.keys()] : [i]; /* its own, by 0 */
    return list.map(j => ({ j, rate: rates.get(j) || 0 }));
}

/* The op alone: its changes for each nudge, and of a softmax its row (nudge.h); null if the library cannot compute it. */
function askAlone(step, i, moved) {
    const { part: { tensor, line: { result } }, nudge: { kind, factor = 1 } } = step,
        op = kind === "product" ? "linear" : presetNow() || step.nudge.op;
    const numbers = isOfWeights(step) ? moved.map(({ j }) => result.value[j])
        : op === "linear" ? moved.map(({ rate }) => rate) : [tensor.value[i]];
    const place = isOfWeights(step) ? i % result.columns : 0,
        row = isOfWeights(step) ? ["", tensor.gradient, result.gradient, moved.map(({ j }) => result.grad[j]).join(" ")].join("\n") : "";
    return op && Controls.ask(`nudge ${op} ${factor} ${place} -1 1 ${NUDGES} ${numbers.join(" ")}${row}`);
}

/* The lesson for each nudge; null of a tape. */
function askLesson(i, { name }, { name: shown }) {
    const canRun = Controls.isLive() && Controls.settings().length > 0 && state.lesson.name === Controls.recorded().name && name && shown;
    return canRun && Controls.forward([`probe ${i} -1 1 ${NUDGES} ${name}`, `show ${shown}`]);
}

/* What happens: change(n, row) of a number that moves, loss(n), where the whole lesson was computed. */
function whatHappens(step, i, moved) {
    const { part: { tensor, line: { result } }, nudge: { changes } } = step, probe = !presetNow() && askLesson(i, tensor, result);
    const from = (list, n) => (list ? Number(list[n]) - Number(list[STILL]) : 0);
    if (probe) return { loss: n => from(probe.losses, n),
        change: (n, row) => from(probe.shown[0].values[probe.shown[0].moved.indexOf(moved[row].j)], n) };
    const alone = askAlone(step, i, moved)?.nudge;
    if (alone) return { change: (n, row) => Number(alone[n][row]) };
    return { isStill: true, change: changes && i === (step.look ?? step.most) ? (n, row) => Number(changes[row]) : null };
}

let nudged = null; /* of the number that is nudged: what was asked for, once */
function nudgeOf(step) {
    const i = nudgedElement(step), isLive = Controls.isLive(), others = presetNow();
    if (nudged?.step === step && nudged.i === i && nudged.isLive === isLive && nudged.others === others) return;
    const moved = movedBy(step, i), { part: { dx, line: { result } } } = step, row = isOfWeights(step) && isLive && askAlone(step, i, moved) || {};
    if (others) moved.forEach((each, n) => each.rate = Number(row.rates[n]));
    nudged = { step, i, moved, isLive, others, slope: dx[i], y: result, dy: result.grad, weights: others ? row.weights : moved.map(({ j }) => result.value[j]),
        algebra: row.algebra || step.algebra, says: row.says, ...whatHappens(step, i, moved) };
}

const nudgeAt = n => (nudged.isStill ? RECORDED_NUDGE : (n - STILL) / STILL);
const changeAt = (n, row) => (nudged.change ? nudged.change(n, row) : null);

/* ---- bars and numbers --------------------------------------------------------------------------------------------- */

const withDecimals = (x, d) => fix(x, { d, e: 0 });
const withSign = (x, d) => (x > 0 && Number(withDecimals(x, d)) ? "+" : "") + withDecimals(x, d);
const bracketed = text => (/^−/.test(text) ? `(${text})` : text);

/* The largest change of a number, for the scale of its bar: what happens at both ends, and what is predicted. */
const farthest = (rate, happens) => Math.max(Math.abs(rate), ...(happens ? [0, NUDGES - 1].map(n => Math.abs(happens(n))) : []));

/* A bar from the middle to what happens, and a mark at what is predicted; null: none. */
function barOfChange(x, most, predicted) {
    const far = y => Math.max(-49, Math.min(49, 49 * y / most || 0)), w = Math.abs(far(x));
    return el("span", { class: "bar-d", "aria-hidden": "true" },
        el("i", { class: x < 0 ? "neg" : "pos", style: `${x < 0 ? "right" : "left"}:50%;width:${w}%` }),
        predicted !== null && el("s", { style: `left:${50 + far(predicted)}%` }));
}

const barOfWeight = (was, now) => el("span", { class: "bar-v", "aria-hidden": "true" },
    el("i", { style: `width:${100 * was}%` }), el("s", { style: `width:${100 * now}%` }));

const num = text => el("span", { class: "num" }, text);
const td = (name, ...more) => el("td", { "data-k": name }, more);

/* How many decimals weights and rates need, so that each line is right as it is printed. */
function decimalsFor({ moved, i, weights }) {
    const at = (x, d) => Number(x.toFixed(d)), own = weights[moved.findIndex(({ j }) => j === i)];
    const isRight = ([a, b]) => moved.every(({ j, rate }, row) =>
        Math.abs((j === i ? 1 - at(own, a) : -at(weights[row], a)) * at(own, a) - at(rate, b)) <= 0.5000001 * 10 ** -b);
    return [[3, 3], [4, 3], [5, 3], [4, 4], [5, 4], [5, 5]].find(isRight) || [3, 3];
}

/* ---- a softmax ---------------------------------------------------------------------------------------------------- */

/* Of many numbers: the one that is nudged, and those that move most. */
function chosenRows({ moved, i }) {
    const all = range(moved.length, n => n), far = n => (moved[n].j === i ? Infinity : Math.abs(moved[n].rate));
    return all.length <= MOST_MOVED ? all : all.sort((a, b) => far(b) - far(a)).slice(0, FEW_MOVED).sort((a, b) => a - b);
}

/* A line for each weight of the row, at nudge n. */
function drawWeights(step, n) {
    const { moved, weights } = nudged, rows = chosenRows(nudged), left = moved.filter((_, row) => !rows.includes(row));
    const isOwn = !plantedAt(step) && !step.nudge.factor, [dp, dr] = isOwn ? decimalsFor(nudged) : [3, 3];
    const most = Math.max(...moved.map(({ rate }, row) => farthest(rate, nudged.change && (m => changeAt(m, row)))));
    const head = ["", "weight", "change", ["change per nudge", isOwn && [": ", el("span", { class: "held" }, nameEl("p"), " (1 − ", nameEl("p"), "), −", nameEl("p r"))]]],
        name = text => el("th", { scope: "row" }, text);
    return el("table", { class: "nudge" }, el("thead", {}, el("tr", {}, head.map(words => el("th", {}, words)))),
        el("tbody", {}, rows.map(row => drawWeight(row, { n, most, isOwn, dp, dr }))),
        el("tfoot", {}, left.length > 0 && el("tr", {}, name(`${left.length} more`), el("td"), el("td"), td("per nudge", withSign(sum(left.map(({ rate }) => rate)), dr))),
            el("tr", { class: "sum-row" }, name("sum"), td("weights", num(weights.some(p => p) ? "1" : "0")), td("change", num("0")), td("per nudge", "0"))));
}

/* "0.508 × 0.492 = +0.250": p (1 − p), or −p r. */
function drawWeight(row, { n, most, isOwn, dp, dr }) {
    const { i, y, moved, weights } = nudged, { j, rate } = moved[row], real = changeAt(n, row), p = weights[row], own = weights[moved.findIndex(each => each.j === i)],
        view = valueView(y), reason = p === 0 ? view.reason(j) : "";
    const product = j === i ? `${withDecimals(own, dp)} × ${withDecimals(1 - own, dp)}` : `−${withDecimals(own, dp)} × ${withDecimals(p, dp)}`;
    return el("tr", { class: [j === i && "own", /^masked/.test(reason) && "masked"].filter(Boolean).join(" "), title: reason },
        el("th", { scope: "row" }, view.columnWords ? view.columnWords[j % y.columns] : String(j % y.columns)),
        td("weight", barOfWeight(p, p + real), num(real === null ? "" : withDecimals(p + real, 2))),
        td("change", barOfChange(real, most, rate * nudgeAt(n)), num(real === null ? "" : withSign(real, 3))),
        td("per nudge", isOwn && p !== 0 && product + " = ", el("b", {}, withSign(rate, dr))));
}

/* The rule from the changes, line by line; what is to be predicted stands in the two lines of numbers. */
function drawAddUp(n) {
    const isHidden = isSecret(picture.main, nudged.i), { algebra, others } = nudged;
    return [drawAlgebra(isHidden ? algebra.slice(0, -2) : algebra), isHidden ? drawTermsOfNudge()
        : !others && el("table", { class: "nudge few" }, el("tbody", {}, drawLossRow(n, 1)))];
}

/* What happens to the loss, beside its prediction. */
function drawLossRow(n, columns) {
    const { slope, loss } = nudged, real = loss ? loss(n) : null, { d } = decimalsOf([slope / 10]), h = nudgeAt(n);
    return el("tr", { class: "plain" }, el("th", { scope: "row" }, "loss"), columns > 1 && el("td"),
        td("change", barOfChange(real, farthest(slope, loss), slope * h), num(real === null ? "" : el("b", {}, withSign(real, d)))),
        el("td", { colspan: columns, "data-k": "predicted" }, nameEl("h"),
            ` × ${bracketed(withDecimals(slope, d))} = ${withSign(h * Number(slope.toFixed(d)), d)}`));
}

/* The gradient of the number, as the rule has it; or a field for it. */
function drawTermsOfNudge() {
    const { main } = picture, { i } = nudged, isHidden = isSecret(main, i);
    return el("p", { class: "derive" }, nameEl(main.name), placeWords(main, i), " = ",
        isHidden ? guessField(main, i) : drawTerms(main, i, picture.terms(i), false, true));
}

/* ---- a product, and a single number ------------------------------------------------------------------------------- */

/* The line forward, with what the number meets and moves. */
function drawForward(step, n) {
    const { i, moved, y } = nudged, { part: { tensor } } = step, h = nudgeAt(n),
        forward = state.lesson.steps.find(each => each.kind === "forward" && each.unit === step.unit);
    const now = { [tensor.number]: new Map([[i, tensor.value[i] + h]]),
        [y.number]: new Map(moved.map(({ j, rate }, row) => [j, y.value[j] + (changeAt(n, row) ?? rate * h)])) };
    const items = pictureOf(forward).items.map(item => (item.table ? { table: movedView(item.table, now[item.table.t.number]) } : item));
    items.push(sign("→"), { table: gradView(y, { note: "arrives" }) });
    state.layout = layoutOfNudge(items);
    const box = drawItems({ items }, state.layout), own = `v${tensor.number}.${i}`, used = new Set(moved.filter(({ rate }) => rate !== 0)
        .flatMap(({ j, met }) => [`v${y.number}.${j}`, `g${y.number}.${j}`, ...(met ? keysOf(...met) : [])]));
    for (const cell of box.querySelectorAll(".c")) {
        cell.classList.toggle("chosen", cell.dataset.key === own);
        cell.classList.toggle("source", used.has(cell.dataset.key));
    }
    for (const grid of box.querySelectorAll(".grid")) (grid.querySelector(".chosen") || grid.querySelector(".c")).tabIndex = 0;
    return box;
}

/* The number that a single number moves, with its slope, and the loss. */
function drawMoved(step, n) {
    const { moved: [first], y } = nudged, isEach = step.nudge.kind === "each", real = isEach ? changeAt(n, 0) : null;
    if (!isEach && isSecret(picture.main, nudged.i)) return drawTermsOfNudge();
    return [el("table", { class: "nudge few" }, el("tbody", {}, isEach && el("tr", {}, el("th", { scope: "row" }, nameEl(y.symbol)),
        td("change", barOfChange(real, farthest(first.rate, nudged.change && (m => changeAt(m, 0))), first.rate * nudgeAt(n)), num(real === null ? "" : withSign(real, 3))),
        td("predicted", nameEl("h"), ` × ${bracketed(bare(first.rate))}, the slope`)), !isSecret(picture.main, nudged.i) && drawLossRow(n, 1))),
    drawTermsOfNudge()];
}

/* In one line if they fit there; they then have the whole width. Rows that were made lower (settle) stay so. */
function layoutOfNudge(items) {
    const fit = () => {
        const layout = layoutOf(items, byId("step").clientWidth, 0.3 * innerHeight, false), height = Math.min(layout.height, nudged.height);
        return { ...layout, height, font: Math.min(layout.font, height * 0.58) };
    };
    const layout = fit();
    if (!layout.wraps || !isWide()) return layout;
    byId("below").classList.add("full");
    return fit();
}

/* A table with other numbers at some places: then they are none of the data's. */
function movedView(view, others) {
    const note = view.isMain ? "moves" : "", format = others && decimalsOf([...view.numbers, ...others.values()], view.t.type);
    if (!others || view.of !== "v") return { ...view, isMain: false, note };
    return { ...view, isMain: false, note, format, shows: "", numbers: view.numbers.map((x, k) => others.get(k) ?? x), reason: () => "" };
}

/* The keys of a number, and of its place in the table that is the same turned over. */
function keysOf({ number, twin, rows, columns }, i) {
    const k = i % (rows * columns);
    return [`v${number}.${i}`, twin && `v${twin.number}.${i - k + k % columns * rows + Math.floor(k / columns)}`];
}

/* ---- the step before its rule ------------------------------------------------------------------------------------- */

/* "nudge h of Z[cat, the]", a slider, and where it stands. */
function drawKnob({ part: { tensor } }, move) {
    const place = placeWords(valueView(tensor), nudged.i), said = () => withSign(nudgeAt(state.nudge), 2), output = el("output", {}, said());
    const slider = el("input", { type: "range", min: "0", max: String(NUDGES - 1), value: String(state.nudge),
        "aria-label": `nudge of ${plain(tensor.title)} ${place}`, "aria-valuetext": said(), oninput: () => {
        state.nudge = Number(slider.value);
        slider.setAttribute("aria-valuetext", output.textContent = said());
        move();
    } });
    return el("label", { class: "knob" }, el("span", {}, nudged.isStill ? "a recorded nudge " : "nudge ", nameEl("h"), " of ",
        nameEl(tensor.symbol), place), !nudged.isStill && slider, output);
}

/* Other scores, beside the nudge; pressed again, the lesson's own. */
const drawPresets = step => isOfWeights(step) && step.algebra && Controls.isLive() &&
    drawChoice("heads presets", PRESETS.map(op => op.replace(/_/g, " ")), "other scores", PRESETS.indexOf(presetNow()), n => {
        preset = PRESETS[n] === presetNow() ? null : { step, op: PRESETS[n] };
        drawAgain();
    });

function drawNudge(box, step) {
    const isWeights = isOfWeights(step), isFirst = lookNow() === 1, [tables, lines] = ["", "nudged"].map(name => el("div", { class: name }));
    nudgeOf(step);
    nudged.height = Infinity;
    const move = () => {
        if (!isWeights) fill(tables, drawForward(step, state.nudge));
        fill(lines, !isWeights ? drawMoved(step, state.nudge) : isFirst ? drawWeights(step, state.nudge) : drawAddUp(state.nudge));
    };
    fill(box, el("div", { class: "upper" }, el("div", { class: "rule" }, drawLooks(step), drawKnob(step, move), drawPresets(step)), tables),
        el("div", { class: "lower" }, lines, el("p", { class: "legend" },
            isWeights && isFirst && [el("b", {}, "weight: "), el("span", { class: "before" }, "before"), el("span", { class: "now" }, "now"), el("b", {}, "change: ")],
            el("span", {}, "what happens"), el("span", { class: "mark" }, "what is predicted"))));
    move();
}
