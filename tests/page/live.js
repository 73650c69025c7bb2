/* live.js - what tests/page/test appends to a copy of a page with the library in it, behind common.js: it uses each
 * control of each lesson, types numbers into cells, breaks each rule, moves the slider of training, and compares what the
 * page shows with answers of the library that it asks for itself. WALK.lessons: what the program recorded, lesson by lesson;
 * WALK.float32: the same with --float32 and TAPEHEAD_ISA=baseline. WALK.answers: how many answers to ask for one after
 * the other, to see that memory does not grow. */

/* Another value for a setting, and what must then hold of the tape. */
const shapes = tape => JSON.stringify(tape.tensors.map(t => t.shape));
const has = (tape, n) => tape.tensors.some(t => t.shape.includes(n));
const masked = tape => tape.lines.flatMap(line => line.parts.flatMap(part => [...part.reasons.values()])).filter(reason => reason === "masked").length;
const scales = tape => tape.lines.filter(line => line.op === "scale" || Number(line.scale ?? 1) !== 1).length;
const other = {
    heads: value => [value === 2 ? 3 : 2, (tape, n) => tape.tensors.some(t => t.shape.length === 3 && t.shape[0] === n)],
    queries: value => [value + 2, has],
    keys: value => [value + 2, has],
    tokens: value => [value + 1, has],
    size: value => [value + 1, (tape, n, before) => shapes(tape) !== shapes(before)],
    step: () => [150, (tape, n, before) => shapes(tape) === shapes(before)],
    dropout: value => [value === 0.5 ? 0.25 : 0.5, (tape, n) => tape.lines.some(line => line.op === "dropout" && Number(line.p) === n)],
    seed: value => [value + 1, (tape, n, before) => shapes(tape) === shapes(before)],
    causal: value => [!value, (tape, n, before) => (n ? masked(tape) > masked(before) : masked(tape) < masked(before))],
    "no-scale": value => [!value, (tape, n, before) => (n ? scales(tape) < scales(before) : scales(tape) > scales(before))],
    "no-mask": value => [!value, (tape, n, before) => (n ? masked(tape) < masked(before) : masked(tape) > masked(before))],
    additive: value => [!value, (tape, n) => tape.lines.some(line => line.op === "tanh") === n],
    float32: value => [!value, (tape, n) => tape.tensors.some(t => t.type === "float32") === n],
};

/* The ops that a wrong rule changes; assign changes none, and is seen at a leaf with several uses. */
const concerned = { softmax: /^(masked_)?softmax$/, transpose: /^transpose$/, assign: /^$/, dropout: /^dropout$/, mask: /^masked_softmax$/ };

let live = null;
const numbersOf = lesson => JSON.stringify(lesson.tape.tensors.map(t => [t.name, t.value.map(String), (t.grad || []).map(String)]));

/* The numbers on the page: those of this step are in its cells, all in state.lesson. */
function expectShown(lesson, what) {
    expect(numbersOf(state.lesson) === numbersOf(lesson), `${what}: the page holds other numbers than the library's answer`);
    for (const cell of all("#stage [data-cell]")) {
        const [, part, t, i] = /^([gv])(\d+)\.(\d+)$/.exec(cell.dataset.cell), tensor = lesson.tape.tensors[t];
        const shows = cell.closest(".view").dataset.shows;
        if (shows !== `value ${t}` && shows !== `grad ${t}`) continue;
        const x = Number((part === "g" ? tensor.grad : tensor.value)[i]), [, shown] = /: ([^ :,]+)(?:, .*)?$/.exec(cell.title) || [];
        expect(shown === (Object.is(x, -0) ? "-0" : String(x)), `${what}: ${cell.title} and not ${x}`);
    }
    expect(live.tensors() === 0, `${what}: ${live.tensors()} tensors are left`);
    lookWide();
}

function ask(request) {
    const answer = live.answer(request);
    expect(answer.lessons, `${request}: ${answer.error}`);
    return answer.lessons ? answer.lessons[0] : null;
}

const red = () => all("#tape .badge.wrong").map(badge => badge.closest("li").textContent.trim());

/* Uses a control as a reader does. */
function set(input, value) {
    input.focus();
    if (input.type === "checkbox") return input.click();
    input.value = value;
    input.dispatchEvent(new Event(input.type === "range" ? "input" : "change", { bubbles: true }));
}

/* The largest difference of two lessons whose structure is the same. */
function difference(a, b, path = "") {
    if (typeof a === "number" && typeof b === "number") return path.endsWith("worst") ? 0 : Math.abs(a - b) / Math.max(1, Math.abs(a)) || 0;
    if (typeof a !== "object" || typeof b !== "object" || !a || !b) return Object.is(a, b) ? 0 : Infinity;
    const keys = Object.keys(a);
    if (keys.join() !== Object.keys(b).join()) return Infinity;
    return keys.reduce((most, key) => Math.max(most, difference(a[key], b[key], `${path}.${key}`)), 0);
}

function compareWithRecorded() {
    let worst = 0;
    for (const recorded of WALK.lessons) worst = Math.max(worst, difference(recorded, ask(`lesson ${recorded.number}`)));
    expect(worst <= 1e-12, `live and recorded differ by ${worst}`);
    for (const recorded of WALK.float32) {
        const most = difference(recorded, ask(`lesson ${recorded.number}\nfloat32 1`));
        expect(most === 0, `lesson ${recorded.number} in float32: live and recorded differ by ${most}`);
    }
    report.difference = worst;
}

/* One control: there, a link to it, and back. */
async function useControl(number, setting) {
    const { key, kind, value } = setting, [to, holds] = other[key](value), text = kind === "switch" ? String(Number(to)) : String(to);
    const what = `lesson ${number}, ${key} ${text}`, before = state.lesson, input = $("#set-" + key);
    await go(`#lesson=${number}&step=${Math.ceil(before.steps.length / 2)}`);
    const recorded = $("#stage").textContent;
    set(input, text);
    const wanted = ask(`lesson ${number}\n${key} ${text}`);
    expectShown(wanted, what);
    expect(holds(state.lesson.tape, to, before.tape), `${what}: it does not change what it should`);
    expect(numbersOf(before) !== numbersOf(state.lesson), `${what}: no number changes`);
    expect(red().length === 0, `${what}: a badge is red: ${red()}`);
    expect(document.activeElement === input, `${what}: the control loses the focus`);
    const link = where(), shown = $("#stage").textContent;
    expect(link.includes(`&${key === "step" ? "sgd" : key}=${text}`), `${what}: the address is ${link}`);
    expect(!$("#again").disabled && $("#changed").textContent.includes("computed"), `${what}: the page does not say that it computed`);
    await go("#lesson=1");
    await go(link);
    expect(where() === link && $("#stage").textContent === shown, `${link} does not lead back`);
    $("#again").click();
    expect(state.lesson === before && red().length === 0, `${what}: start again does not show the recorded lesson`);
    await go(`#lesson=${number}&step=${Math.ceil(before.steps.length / 2)}`);
    expect($("#stage").textContent === recorded, `${what}: the step after start again is another one`);
    report.controls++;
}

/* A value that the library refuses changes nothing. */
function refuse(number, { key, value, kind }) {
    if (kind === "switch" || key === "step") return;
    const before = state.lesson, input = $("#set-" + key), link = where();
    set(input, "-1");
    expect($("#changed.refused") && $("#changed").textContent.includes(key), `lesson ${number}: ${key} -1 is not refused`);
    expect(state.lesson === before && input.value === String(value) && where() === link, `lesson ${number}: ${key} -1 changes something`);
}

/* Types a number into a cell of a leaf, with the keys alone. */
async function typeNumber(number) {
    const leaf = state.lesson.tape.tensors.find(t => !t.producer && t.name && t.grad), i = leaf.value.length - 1;
    const key = `v${leaf.number}.${i}`, before = state.lesson, step = leaf.uses[0].result.valueStep + 1;
    const what = `lesson ${number}, a typed number`;
    await go(`#lesson=${number}&step=${step}&cell=${key}`);
    const cell = $(`#stage [data-cell="${key}"]`);
    cell.focus();
    press("2", cell);
    const input = $("#type");
    expect(document.activeElement === input && input.value === "2", `${what}: a digit does not begin it`);
    input.value = "two";
    input.form.requestSubmit();
    expect(state.lesson === before && $(".type").textContent.includes("no number"), `${what}: "two" is not refused`);
    $("#type").value = "2,5";
    $("#type").form.requestSubmit();
    expectShown(ask(`lesson ${number}\nset ${i} 2.5 ${leaf.name}`), what);
    expect(state.lesson.tape.tensors[leaf.number].value[i] === 2.5 || number === 6, `${what}: the cell holds another one`);
    expect($("#stage").contains(document.activeElement), `${what}: the focus is lost`);
    expect(red().length === 0, `${what}: a badge is red: ${red()}`);
    expect($(`#stage .typed[data-cell="${key}"]`), `${what}: the cell is not marked`);
    const link = where(), shown = $("#stage").textContent;
    await go(`#lesson=${number}`);
    await go(link);
    expect($("#stage").textContent === shown, `${link} does not lead back`);
    [...all(".type button")].find(button => button.textContent.includes("back")).click();
    expect(state.lesson === before && !where().includes("set="), `${what}: it does not go back`);
    await go(`${where().replace(/&set=[^&]*/, "")}&set=${i},1e%2B21,${encodeURIComponent(leaf.name)}`);
    const large = where();
    expectShown(ask(`lesson ${number}\nset ${i} 1e+21 ${leaf.name}`), `${what}, 1e+21`);
    await go(`#lesson=${number}`);
    await go(large);
    expect(where() === large && state.lesson !== before, `${large} does not lead back`);
    await go(`#lesson=${number}`);
    report.typed++;
}

/* The card of a gradient that the rule made wrong says what is right. */
async function showsRight(rightLesson, what) {
    const { tensors } = state.lesson.tape, { number, steps } = state.lesson;
    for (const t of tensors.filter(t => t.check)) {
        const right = rightLesson.tape.tensors[t.number].grad.map(Number), i = right.findIndex((x, n) => !(Math.abs(x - t.grad[n]) <= 1e-6));
        if (i < 0) continue;
        await go(`${where().replace(/&step=\d+/, `&step=${steps.length}`)}&cell=g${t.number}.${i}`);
        expect($("#why .refused").textContent.includes(String(right[i])), `${what}: lesson ${number} does not say that ${t.name} should be ${right[i]}`);
        return;
    }
    fail(`${what}: no gradient of a leaf is wrong`);
}

/* The badge of a line whose parts have these errors and so many derivatives that differences cannot check. */
function checkBadges() {
    const badgeOf = (...parts) => lineBadge({ parts: parts.map(([worst, unchecked]) => ({ worst, unchecked })) }, false);
    for (const [parts, isWrong, title] of [
        [[[0, 0], [2e-10, 0]], false, "checked by differences, largest error 2e-10"],
        [[[0, 0]], false, "checked by differences, largest error 0"],
        [[[0, 3], [0, 1]], false, "differences cannot check 4 of the derivatives, and agree with the others, largest error 0"],
        [[[1e-3, 3]], true, "differences disagree, largest error 1e-3"],
        [[[0, 0], [NaN, 0]], true, "differences disagree, largest error NaN"],
    ]) {
        const made = badgeOf(...parts);
        expect(made.title === title && made.classList.contains("wrong") === isWrong, `a badge says ${made.title}, not ${title}`);
    }
}

async function breakRules(number) {
    for (const { key, title, wrong } of state.lesson.rules.slice()) {
        const what = `lesson ${number}, ${title}`;
        set($("#set-rule"), key);
        expectShown(ask(`lesson ${number}\nrule ${key}\ntrain 1`), what);
        const { lines, tensors } = state.lesson.tape, isRed = line => line.parts.some(part => !(part.worst < 1e-6));
        const redLines = lines.filter(isRed), redLeaves = tensors.filter(t => t.check && !t.check.right);
        if (key === "assign") expect(redLeaves.length > 0 && redLeaves.every(t => t.parts.length > 1), `${what}: no leaf is red, or a wrong one`);
        else expect(redLines.length > 0 && redLeaves.length === 0, `${what}: no line is red, or a leaf`);
        expect(redLines.every(line => concerned[key].test(line.op)), `${what}: ${red()} are red`);
        expect(red().length === redLines.length + redLeaves.length, `${what}: red badges are ${red()}`);
        expect($("#broken").textContent.includes(wrong) && all("#broken .red a").length === red().length, `${what}: the card says something else`);
        expect(all("#broken polyline").length === 2, `${what}: the losses of both rules are not there`);
        const { right, wrong: losses } = state.lesson.training;
        expect(right.length === 200 && losses.length === 200 && String(right) !== String(losses), `${what}: the trainings do not differ`);
        await go($("#broken .red a").getAttribute("href"));
        expect($("#stage .badge.wrong"), `${what}: its link leads to a green badge`);
        if (key !== "assign") expect($("#stage .rule.refused").textContent.includes(wrong), `${what}: the line does not show its rule`);
        await showsRight(ask(`lesson ${number}`), what);
        $("#broken button").click();
        expect(red().length === 0 && $("#broken").hidden && !where().includes("rule"), `${what}: the right rule does not come back`);
        report.broken++;
    }
}

/* The step and the loss at the dot of lesson 6's chart, read from the numbers at its axes. */
function readChart() {
    const [x, y] = $("#lesson .losses circle").getAttribute("transform").match(/[\d.]+/g).map(Number);
    const texts = all("#lesson .losses text"), ticks = all("#lesson .losses path").length;
    const read = (place, [first, last], coordinate) => {
        const [from, to] = [first, last].map(text => [Number(text.getAttribute(coordinate)), Number(text.textContent)]);
        return from[1] + (to[1] - from[1]) * (place - from[0]) / (to[0] - from[0]);
    };
    const steps = texts.slice(ticks).filter(text => /^\d/.test(text.textContent));
    return { step: read(x, [steps[0], steps[steps.length - 1]], "x"), loss: read(y + 4, [texts[0], texts[ticks - 1]], "y") };
}

/* The slider goes both ways. */
function slide(number) {
    const slider = $("#set-step"), seen = {};
    if (!slider) return;
    const before = numbersOf(state.lesson);
    for (const n of [10, 150, 199, 150, 10, 0]) {
        set(slider, String(n));
        const now = numbersOf(state.lesson), loss = state.lesson.tape.tensors.find(t => t.name === "loss").value[0];
        expect(seen[n] === undefined || seen[n] === now, `lesson ${number}: step ${n} of training shows other numbers on the way back`);
        expect(Math.abs(loss - state.lesson.losses[n]) <= 1e-5 * Math.abs(loss), `lesson ${number}: step ${n} has the loss ${loss}`);
        const dot = readChart();
        expect(Math.abs(dot.step - n - 1) < 1e-6 && Math.abs(dot.loss - loss) <= 0.01 * loss,
            `lesson ${number}: the chart shows the loss ${dot.loss} at step ${dot.step}, not ${loss} at step ${n + 1}`);
        expect(document.activeElement === slider && slider.value === String(n), `lesson ${number}: the slider stands elsewhere`);
        seen[n] = now;
    }
    expect(numbersOf(state.lesson) === before, `lesson ${number}: step 0 is not the recorded lesson`);
    report.slid = Object.keys(seen).length;
}

function flatMemory() {
    live.answer("lesson 1");
    const bytes = live.bytes();
    for (let n = 0; n < WALK.answers; n++) live.answer("lesson 1");
    expect(live.bytes() === bytes && live.tensors() === 0, `memory grew from ${bytes} to ${live.bytes()} bytes, ${live.tensors()} tensors are left`);
}

/* A page whose browser has no WebAssembly: the recorded numbers, and controls that say why they are off. */
function refused() {
    const controls = all("#settings input, #settings select");
    expect(controls.length > 3 && controls.every(input => input.disabled), "a control is not off");
    expect(live === null && $("#changed").textContent.includes(WALK.refused), "the controls do not say why they are off");
    expect(all("#stage [data-cell]").length > 0 && red().length === 0, "the recorded numbers are not there");
}

begin(async () => {
    live = await Live.load();
    if (WALK.refused) return refused();
    Object.assign(report, { controls: 0, typed: 0, broken: 0, slid: 0 });
    compareWithRecorded();
    checkBadges();
    for (const { number, settings } of WALK.lessons) {
        await go(`#lesson=${number}`);
        if ($("#change-open[aria-expanded=false]")) $("#change-open").click();
        for (const setting of settings) {
            await useControl(number, setting);
            refuse(number, setting);
        }
        await typeNumber(number);
        await breakRules(number);
        slide(number);
    }
    flatMemory();
});
