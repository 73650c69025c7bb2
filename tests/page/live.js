/* live.js - what tests/page/test appends to a copy of a page with the library in it, behind common.js: it uses each
 * control of each lesson, types numbers into cells, breaks each rule, takes steps of SGD, and compares what the
 * page shows with answers of the library that it asks for itself. WALK.lessons: what the program recorded, lesson by lesson.
 * WALK.answers: how many answers to ask for one after the other, to see that memory does not grow. */

/* Another value for a setting, and what must then hold of the tape. */
const shapes = tape => JSON.stringify(tape.tensors.map(t => t.shape));
const has = (tape, n) => tape.tensors.some(t => t.shape.includes(n));
const masked = tape => tape.lines.flatMap(line => line.parts.flatMap(part => [...part.zeros.values()])).filter(reason => /^masked/.test(reason)).length;
const scales = tape => tape.lines.filter(line => line.op === "scale" || Number(line.scale ?? 1) !== 1).length;
const other = {
    heads: value => [value === 2 ? 3 : 2, (tape, n) => tape.tensors.some(t => t.shape.length === 3 && t.shape[0] === n)],
    queries: value => [value + 2, has],
    keys: value => [value + 2, has],
    tokens: value => [value + 1, has],
    size: value => [value + 1, (tape, n, before) => shapes(tape) !== shapes(before)],
    dropout: value => [value === 0.5 ? 0.25 : 0.5, (tape, n) => tape.lines.some(line => line.op === "dropout" && Number(line.p) === n)],
    seed: value => [value + 1, (tape, n, before) => shapes(tape) === shapes(before)],
    causal: value => [!value, (tape, n, before) => (n ? masked(tape) > masked(before) : masked(tape) < masked(before))],
    "no-scale": value => [!value, (tape, n, before) => (n ? scales(tape) < scales(before) : scales(tape) > scales(before))],
    "no-mask": value => [!value, (tape, n, before) => (n ? masked(tape) < masked(before) : masked(tape) > masked(before))],
    lengths: value => [!value, (tape, n) => tape.tensors.some(t => t.name === "lengths") === n],
    window: value => [!value, (tape, n) => tape.tensors.some(t => t.name === "window") === n],
    "pad-in-loss": value => [!value, (tape, n) => tape.tensors.some(t => t.name === "counts") !== n],
    additive: value => [!value, (tape, n) => tape.lines.some(line => line.op === "tanh") === n],
};

/* The ops that a wrong rule changes; assign changes none, and is seen at a leaf with several uses. */
const concerned = { softmax: /^(masked_)?softmax$/, transpose: /^transpose$/, assign: /^$/, dropout: /^dropout$/, mask: /^masked_softmax$/ };

let live = null;
const numbersOf = lesson => JSON.stringify(lesson.tape.tensors.map(t => [t.name, t.value.map(String), (t.grad || []).map(String)]));

/* The numbers on the page: those of this step are in its cells, all in state.lesson. */
function expectShown(lesson, what) {
    expect(numbersOf(state.lesson) === numbersOf(lesson), `${what}: the page holds other numbers than the library's answer`);
    for (const cell of all("#step .c")) {
        const [, kind, t] = /^(value|grad) (\d+)$/.exec(cell.closest(".tab").dataset.shows) || [], tensor = kind && lesson.tape.tensors[t];
        if (!tensor || cell.textContent === "?" || cell.closest(".tab").querySelector(".ten")) continue;
        const x = Number(tensor[kind][cell.dataset.i]), text = cell.textContent.replace("−", "-");
        if (Number.isFinite(Number(text))) expect(Math.abs(Number(text) - x) <= 0.51 * 10 ** -(text.split(".")[1] || "").length, `${what}: ${text} and not ${x}`);
    }
    expect(live.tensors() === 0, `${what}: ${live.tensors()} tensors are left`);
    lookWide();
}

/* The lesson of that name in the library's answer: lesson 3 has two parts. */
const nameIn = ({ number, part = "" }) => number + part;

function ask(request, name = state.lesson.name) {
    const answer = live.answer(request);
    expect(answer.lessons, `${request}: ${answer.error}`);
    return answer.lessons ? answer.lessons.find(lesson => nameIn(lesson) === name) || answer.lessons[0] : null;
}

/* The steps whose check is red. */
const red = () => state.lesson.steps.filter(step => step.check === "wrong").map(step => step.id);

/* Uses a control as a reader does. */
function set(input, value) {
    input.focus();
    if (input.type === "checkbox") return input.click();
    input.value = value;
    input.dispatchEvent(new Event("change", { bubbles: true }));
}

/* The largest difference of two lessons whose structure is the same. */
function difference(a, b, path = "") {
    if (typeof a === "number" && typeof b === "number") return path.endsWith("worst") ? 0 : Math.abs(a - b) / Math.max(1, Math.abs(a)) || 0;
    if (path.endsWith("checked")) return 0; /* the words of an error */
    if (typeof a !== "object" || typeof b !== "object" || !a || !b) return Object.is(a, b) ? 0 : Infinity;
    const keysOf = each => Object.keys(each).filter(key => key !== "experiments"); /* which the program alone computes */
    const keys = keysOf(a);
    if (keys.join() !== keysOf(b).join()) return Infinity;
    return keys.reduce((most, key) => Math.max(most, difference(a[key], b[key], `${path}.${key}`)), 0);
}

function compareWithRecorded() {
    let worst = 0;
    for (const recorded of WALK.lessons) worst = Math.max(worst, difference(recorded, ask(`lesson ${nameIn(recorded)}`, nameIn(recorded))));
    expect(worst <= 1e-12, `live and recorded differ by ${worst}`);
    report.difference = worst;
}

/* What a step says, whatever room it has. */
const stepText = () => ["#door h2", "#step #terms"].map(part => $(part)?.textContent).join() + all("#step .c").map(cell => cell.textContent).join();

const openPanelOf = name => {
    if ($(`#b-${name}`).getAttribute("aria-expanded") !== "true") $(`#b-${name}`).click();
};
const middle = lesson => lesson.steps[Math.ceil(lesson.steps.length / 2)].id;

/* One control: there, a link to it, and back. */
async function useControl(name, setting) {
    const { key, kind, value } = setting, [to, holds] = other[key](value), text = kind === "switch" ? String(Number(to)) : String(to);
    const what = `lesson ${name}, ${key} ${text}`, before = state.lesson;
    await go(`#${name}/${middle(before)}`);
    const recorded = stepText();
    openPanelOf("example");
    const input = $("#set-" + key);
    if (input) set(input, text);
    else await go(`#${name}/${middle(before)}&${key}=${text}`); /* it has no field */
    const wanted = ask(`lesson ${name}\n${key} ${text}`);
    expectShown(wanted, what);
    expect(holds(state.lesson.tape, to, before.tape), `${what}: it does not change what it should`);
    expect(numbersOf(before) !== numbersOf(state.lesson), `${what}: no number changes`);
    expect(red().length === 0, `${what}: a check is red: ${red()}`);
    expect(!input || document.activeElement === input, `${what}: the control loses the focus`);
    const link = where(), shown = stepText();
    expect(link.includes(`&${key}=${text}`), `${what}: the address is ${link}`);
    if (!input) openPanelOf("example");
    expect(!$("#again").disabled && $("#changed").textContent.includes("computed"), `${what}: the page does not say that it computed`);
    expect($("#rule-said").textContent.includes("Changed: the loss is ") && $("#b-example.used"), `${what}: the page does not say that it shows another state`);
    await go("#1");
    await go(link);
    expect(where() === link && stepText() === shown, `${link} does not lead back`);
    await sideBySide(what);
    openPanelOf("example");
    $("#again").click();
    expect(state.lesson === before && red().length === 0, `${what}: start again does not show the recorded lesson`);
    await go(`#${name}/${middle(before)}`);
    expect(stepText() === recorded, `${what}: the step after start again is another one`);
    report.controls++;
}

/* Both states and their difference, number by number. */
async function sideBySide(what) {
    openPanelOf("example");
    $("#compare").click();
    const tables = all("#step .tab"), numbers = table => [...table.querySelectorAll(".c")].map(cell => Number(cell.textContent.replace("−", "-")));
    if ($("#door h2").textContent.includes(" and ")) {
        const [difference, mine, theirs] = tables.map(numbers), decimals = cell => (/\.(\d+)/.exec(cell.textContent) || ["", ""])[1].length,
            most = 1.6 * 10 ** -Math.max(...[...tables[1].querySelectorAll(".c")].map(decimals));
        expect(difference.every((x, i) => !Number.isFinite(x) || !Number.isFinite(mine[i]) || Math.abs(mine[i] - theirs[i] - x) <= Math.max(0.02, most)), `${what}: the difference is another`);
        expect(tables.length === 3 && $(".both").textContent.includes("The loss is"), `${what}: two states are not side by side`);
    } else expect($(".both"), `${what}: nothing is said of the other state`);
    expect(where().includes("&compare=1"), `${what}: the address has no comparison`);
    $("#compare").click();
    $("#panel .close").click();
    expect(!where().includes("compare"), `${what}: the comparison stays`);
}

/* A value that the library refuses changes nothing. */
function refuse(number, { key, value, kind }) {
    if (kind === "switch" || key === "words") return;
    openPanelOf("example");
    if (!$("#set-" + key)) return;
    const before = state.lesson, input = $("#set-" + key), link = where();
    set(input, "-1");
    expect($("#changed.refused") && $("#changed").textContent.includes(key), `lesson ${number}: ${key} -1 is not refused`);
    expect(state.lesson === before && input.value === String(value) && where() === link, `lesson ${number}: ${key} -1 changes something`);
}

/* Types a number into a cell of a leaf, with the keys alone. */
async function typeNumber(name) {
    await go(`#${name}`);
    const leaf = state.lesson.tape.tensors.find(t => !t.producer && t.name && t.grad), i = leaf.value.length - 1;
    const key = `v${leaf.number}.${i}`, before = state.lesson, { id } = state.lesson.steps.find(step => step.kind === "forward" && step.unit.inputs.includes(leaf));
    const what = `lesson ${name}, a typed number`;
    await go(`#${name}/${id}/${key}`);
    const cell = $(`#step .c[data-key="${key}"]`);
    cell.focus();
    press("2", cell);
    const input = $("#type"), submit = text => {
        $("#type").value = text;
        $("#type").form.requestSubmit();
    };
    expect(document.activeElement === input && input.value === "2", `${what}: a digit does not begin it`);
    submit("two");
    expect(state.lesson === before && $("#type").form.textContent.includes("no number"), `${what}: "two" is not refused`);
    submit("2,5");
    expectShown(ask(`lesson ${name}\nset ${i} 2.5 ${leaf.name}`), what);
    expect(state.lesson.tape.tensors[leaf.number].value[i] === 2.5, `${what}: the cell holds another one`);
    expect($("#step").contains(document.activeElement), `${what}: the focus is lost`);
    expect(red().length === 0, `${what}: a check is red: ${red()}`);
    expect($(`#step .typed[data-key="${key}"]`), `${what}: the cell is not marked`);
    const link = where(), shown = stepText();
    await go(`#${name}`);
    await go(link);
    expect(stepText() === shown, `${link} does not lead back`);
    [...all("#terms button")].find(button => button.textContent.includes("back")).click();
    expect(state.lesson === before && !where().includes("set="), `${what}: it does not go back`);
    await go(`#${name}/${id}&set=${i},1e%2B21,${encodeURIComponent(leaf.name)}`);
    const large = where();
    expectShown(ask(`lesson ${name}\nset ${i} 1e+21 ${leaf.name}`), `${what}, 1e+21`);
    expect(red().length === 0, `${what}, 1e+21: without a wrong rule a check is red: ${red()}`);
    await go(`#${name}`);
    await go(large);
    expect(where() === large && state.lesson !== before, `${large} does not lead back`);
    await go(`#${name}`);
    report.typed++;
}

/* The row has the rule in the names of the lesson. */
const showsRule = () => !/\b(y|dy)\b/.test($("#rule-text").value) && $("#rule-said b").textContent.length > 5;

async function breakRules(name) {
    const fits = key => (live.answer(`lesson ${name}\nrule ${key}`).lessons || [])
        .some(lesson => nameIn(lesson) === name && lesson.rule === key);
    for (const key of Object.keys(concerned).filter(fits)) {
        const what = `lesson ${name}, ${key}`;
        await go(`#${name}/f0&rule=${key}`);
        await go($("#rule-said .broken").getAttribute("href"));
        expectShown(ask(`lesson ${name}\nrule ${key}\ntrain 1`), what);
        const { lines, tensors } = state.lesson.tape, isRed = line => line.backward.some(part => part && !(Number(part.worst) < 1e-6));
        const redLines = lines.filter(isRed), redLeaves = state.lesson.steps.filter(step => /not the gradient/.test(step.checked)).map(step => step.tensor);
        if (key === "assign") expect(redLeaves.length > 0 && redLeaves.every(t => t.parts.length > 1), `${what}: no leaf is red, or a wrong one`);
        else expect(redLines.length > 0 && redLeaves.length === 0, `${what}: no line is red, or a leaf`);
        expect(redLines.every(line => concerned[key].test(line.op)), `${what}: ${red()} are red`);
        expect(red().length >= redLines.length + redLeaves.length, `${what}: red checks are ${red()}`);
        expect($("#door .tick.wrong") && $("#mistakes").value, `${what}: it does not lead to its red check`);
        const wrongLeaves = tensors.filter(t => !t.producer && t.grad && t !== stepNow().tensor && Controls.changedByRule(t));
        expect(wrongLeaves.every(t => $("#rule-said").textContent.includes(nameEl(t.gradient).textContent)), `${what}: ${wrongLeaves.length} leaves are wrong, and the page says ${$("#rule-said").textContent}`);
        const { right, wrong: losses } = Controls.training();
        expect(right.length === 200 && losses.length === 200 && String(right) !== String(losses), `${what}: the trainings do not differ`);
        await wait(400);
        expect(new Set(all("#words polyline").map(line => line.getAttribute("class"))).size === 2, `${what}: the losses of both rules are not there`);
        if (key !== "assign") expect(showsRule(), `${what}: the step does not show its rule`);
        await sideBySide(what);
        const broken = where();
        await go(broken.replaceAll("&rule=", "&break="));
        expect(where() === broken, `${what}: break= does not mean rule=`);
        openPanelOf("example");
        $("#again").click();
        expect(red().length === 0 && !$("#b-example.used") && !where().includes("rule"), `${what}: the right rule does not come back`);
        report.broken++;
    }
}

/* The step of SGD: the tape is that of the library's step (test_explain.c: to the last digit); ten steps are ten times one; a step that is too
 * large is seen, ends in NaN and in no error; start again shows the recorded tape. */
async function takeSteps(name) {
    await go(`#${name}/sgd`);
    const first = state.lesson, { sgd: { rate, rates } } = first, what = `lesson ${name}, the step of SGD`;
    const find = text => all("#step button").find(each => each.textContent === text), click = text => {
        find(text).focus();
        find(text).click();
        expect(document.activeElement === find(text), `${what}: ${text} loses the focus`);
        const loss = lossOf(state.lesson), n = stepsTaken(state.lesson), dots = all(".course .losses .dot");
        expect($(".big b").textContent === bare(loss), `${what}: the loss after ${text} is ${$(".big b").textContent}`);
        expect(!n || $("#announce").textContent.includes(bare(loss)), `${what}: ${text} is not said`);
        expect(n >= 60 || (dots.length > 0 && dots.length <= n + 1), `${what}: ${dots.length} dots for ${n} steps`);
        expect(red().length === 0 && !$("#rule-said").textContent, `${what}: a check is red, or the page says it twice: ${red()}`);
        lookWide();
        return loss;
    };
    const { tensors, lines } = ask(`lesson ${name}\nstep 0`).tape, isLeaf = number => !lines.some(({ out }) => out === number);
    const leaves = tensors.map((t, number) => ({ ...t, number })).filter(t => isLeaf(t.number) && t.grad);
    keep(first, [[first.print + "kept", ""]]);
    click("take the step");
    expectShown(ask(`lesson ${name}\nstep 1`), what);
    const isStep = (x, dx, y) => Math.abs(x - rate * dx - y) <= 1e-14 * Math.max(Math.abs(x), Math.abs(y)); /* a page has 15 digits */
    expect(leaves.every(t => state.lesson.tape.tensors[t.number].value.every((y, i) => isStep(t.value[i], t.grad[i], y))) && where() === `#${name}/sgd&sgd=1`, `${what} is not W - rate dW`);
    const weights = all(".course .weight:not(.was)").length, was = all(".course .was").map(text => text.textContent);
    const { cover: { tensor, row } } = first, t = first.tape.tensors[tensor];
    if (weights) expect(was.join() === range(weights, c => `was ${fix(t.value[row * t.columns + c], { d: 2, e: 0 })}`).join(), `${what}: the weights were ${was}`);
    expect(innerWidth < 1100 || document.documentElement.scrollHeight <= innerHeight, `${what} is ${document.documentElement.scrollHeight - innerHeight} pixels too tall`);
    if (weights && first.pull) {
        const scores = state.lesson.tape.tensors[first.pull.tensor].value.slice(row * t.columns), tops = all(".course .weight:not(.was)").map(each => Number(each.getAttribute("y")));
        expect(tops.every((a, i) => tops.every((b, j) => (a - b) * (scores[i] - scores[j]) <= 0)) && new Set(tops).size === tops.length, `${what}: the arcs are not as high as the scores ${scores}: ${tops}`);
    }
    for (let n = 1; n < 10; n++) click("take the step");
    const ten = numbersOf(state.lesson);
    press("ArrowLeft");
    expect($("#rule-said").textContent.includes("After 10 steps of SGD"), `${what}: other steps do not say whose tape they show`);
    press("ArrowRight");
    click("start again");
    expect(state.lesson === first && where() === `#${name}/sgd`, `${what}: start again does not show the recorded tape`);
    click("× 10");
    expect(numbersOf(state.lesson) === ten, `${what}: ten steps are not ten times one`);
    expect($(".course polyline").getAttribute("points").split(" ").length === 11, `${what}: the curve has no ten steps`);
    click(String(rates[2]));
    expect(where() === `#${name}/sgd&sgd=10&rate=${rates[2]}` && stepsTaken(state.lesson) === 10, `${what}: another rate leads to ${where()}`);
    click("start again");
    expect(state.lesson !== first && state.lesson.shown.has("kept"), `${what}: another rate forgets what was answered`);
    expect(click("take the step") > lossOf(first) && $("#words .text").textContent.includes("It grew"), `${what}: a step that is too large is not seen`);
    for (let n = 0; n < 3; n++) click("× 100");
    expect(stepsTaken(state.lesson) === 200 && find("× 100").getAttribute("aria-disabled") === "true", `${what}: ${where()} has no end`);
    await go(`#${name}/sgd&sgd=200&rate=10`);
    const { value } = learningLeaves(state.lesson.tape)[0];
    if (!Number.isFinite(lossOf(state.lesson))) expect($("#words .text").textContent.includes("NaN means not a number") && (!$("#step .c") || value.every(Number.isFinite) || all("#step .c").some(cell => cell.textContent === "NaN")), `${what}: NaN is not said`);
    click("start again");
    await go(`#${name}/sgd&set=0,1e%2B300,${encodeURIComponent(leaves[0].name)}`);
    find("take the step").click();
    expect($(".course .losses svg") && stepsTaken(state.lesson) === 1, `${what}: a number that is too large draws nothing`);
    await go(`#${name}/sgd&sgd=200&rate=10`);
    click("start again");
    expect(difference(first.tape.tensors.map(t => t.value), state.lesson.tape.tensors.map(t => t.value)) < 1e-12, `${what}: start again does not lead out of NaN`);
    await go(`#${name}`);
    report.slid++;
}

/* Gives an answer to the question of the card. */
function answerAgain({ form }, x) {
    const cells = all(".again td button");
    if (form === "number") $(".again input").value = String(x);
    else if (form === "choice") all(".again input")[x].click();
    else cells.forEach((cell, i) => (cell.getAttribute("aria-pressed") === "true") !== (Math.floor(x / 2 ** i) % 2 === 1) && cell.click());
    $(".again [data-check]").click();
    return $(".again .result").textContent;
}

/* The card of a lesson: a named mistake, a wrong answer, the right one; then other numbers. The arrow leads on without it. */
async function again(name) {
    const { again: recorded = [] } = state.lesson, known = [...recorded], seen = new Set(), button = text => all(".again button").find(each => each.textContent === text);
    if (!recorded.length) return expect(!$(".again"), `lesson ${name}: it asks about earlier lessons`);
    for (let seed = 1; seed < 12; seed++) known.push(...live.answer(`lesson ${name}\nagain ${seed}`).again);
    const words = text => text.replace(/[^a-z0-9]/gi, ""), numbersOf = ({ form, tables }) => (form === "which" ? [] : tables.flatMap(({ numbers }) => numbers.map(bare)));
    for (let n = 0; n < 6; n++) {
        const text = $(".again .question > p").textContent, cells = all(".again td").map(td => td.textContent + td.innerHTML.includes("hidden-key"));
        const asked = known.find(each => words(text).endsWith(words(el("p", {}, prose(each.ask)).textContent)) && numbersOf(each).every((x, i) => cells[i].startsWith(x)) &&
            (each.form !== "which" || each.tables[0].numbers.every((x, i) => cells[i].includes("true") === (x === 0))));
        expect(asked && !seen.has(asked), `lesson ${name}: ${text} is asked twice, or is not the library's`);
        if (!asked) return;
        seen.add(asked);
        const [mistake] = asked.mistakes, says = answerAgain(asked, mistake.value);
        expect(words(says) === words(el("p", {}, prose(mistake.says)).textContent), `lesson ${name}: ${text} ${mistake.value} is told ${says}`);
        if (asked.form === "number") expect(answerAgain(asked, asked.answer + 33.5).includes("Not yet") && answerAgain(asked, "abc").includes("no number"), `lesson ${name}: ${text}: any number is right`);
        expect(answerAgain(asked, asked.answer).includes("Right"), `lesson ${name}: ${text}: ${asked.answer} is not right`);
        lookWide();
        button("another").click();
    }
    const before = $(".again").textContent;
    press("ArrowRight");
    expect(state.step > 0 && !$(".again"), `lesson ${name}: the arrow does not lead past the card`);
    press("ArrowLeft");
    expect($(".again").textContent === before, `lesson ${name}: the card does not stay as it was`);
    report.asked = (report.asked || 0) + seen.size;
}

function flatMemory() {
    live.answer("lesson 1");
    const bytes = live.bytes();
    for (let n = 0; n < WALK.answers; n++) live.answer("lesson 1");
    expect(live.bytes() === bytes && live.tensors() === 0, `memory grew from ${bytes} to ${live.bytes()} bytes, ${live.tensors()} tensors are left`);
}

/* A page whose browser has no WebAssembly: the recorded numbers, and controls that say why they are off. */
function refused() {
    openPanelOf("example");
    const controls = all("#panel .fields input");
    expect(controls.length > 1 && controls.every(input => input.disabled), "a control is not off");
    expect(live === null && $("#changed").textContent.includes(WALK.refused), "the controls do not say why they are off");
    press("ArrowRight");
    expect(all("#step .c").length > 0 && red().length === 0, "the recorded numbers are not there");
}

begin(async () => {
    live = await Live.load();
    await wait();
    if (WALK.refused) return refused();
    Object.assign(report, { controls: 0, typed: 0, broken: 0, slid: 0 });
    compareWithRecorded();
    for (const { number, part = "", settings } of WALK.lessons) {
        const name = number + part;
        await go(`#${name}`);
        await again(name);
        for (const setting of settings) {
            if (!other[setting.key]) continue;
            await useControl(name, setting);
            refuse(name, setting);
        }
        await typeNumber(name);
        await breakRules(name);
        await takeSteps(name);
    }
    flatMemory();
});
