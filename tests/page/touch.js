/* touch.js - what tests/page/test appends to a copy of a page, behind common.js: it moves what a reader can move, and compares
 * what happens with answers of the library that it asks for itself. WALK.refused: the library is not there. */
let live = null;
const numberIn = text => Number(text.replace("−", "-").replace("+", "").replace(/[()≈ ]/g, ""));
const isRounding = (text, x) => Math.abs(numberIn(text) - x) <= 0.5001 * 10 ** -(text.split(".")[1] || "").length;

/* ---- a nudge ------------------------------------------------------------------------------------------------------ */

const slider = () => $(".knob input"), nudgedSteps = kind => state.lesson.steps.filter(step => step.nudge?.kind === kind);
const cellsOf = key => all(`.nudge tbody td[data-k="${key}"]`), lossRow = () => all(".nudge tr").pop();

function slide(n) {
    slider().focus();
    slider().value = String(n);
    slider().dispatchEvent(new Event("input", { bubbles: true }));
    expect(document.activeElement === slider(), `${where()}: the slider loses the focus`);
}

/* What the library says of this nudge: {losses, moved, values}. */
function probed({ part: { tensor, line } }, i) {
    const { probe, error } = live.answer(`lesson ${state.lesson.name}\nprobe ${i} -1 1 41 ${tensor.name}\nshow ${line.result.name}`);
    expect(probe, `${where()}: ${error}`);
    return { losses: probe.losses, ...probe.shown[0] };
}

/* A mark stands where h times the derivative is, a bar ends where the change is: on the scale of the other bars. */
function lookBars(rows) {
    const middle = 50, scales = rows.map(({ bar, predicted }) => (parseFloat(bar.querySelector("s").style.left) - middle) / predicted).filter(Number.isFinite);
    expect(scales.every(scale => scale > 0 && Math.abs(scale / scales[0] - 1) < 1e-3), `${where()}: a mark stands elsewhere: ${scales}`);
    for (const { bar, real } of scales.length ? rows : []) {
        const { style, className } = bar.querySelector("i"), width = parseFloat(style.width);
        expect(Math.abs(width - scales[0] * Math.abs(real)) < 0.02 && (real === 0 || className === (real < 0 ? "neg" : "pos")), `${where()}: a bar of ${width} for ${real}`);
    }
}

const evaluateLine = text => Number(new Function("return " + text.replace(/−/g, "-").replace(/×/g, "*").replace(/\+(?=[\d.])/g, ""))());

/* The look 1 of a softmax: the changes of a row at each nudge, and its rates, right as they are printed. */
function lookWeights(step, i) {
    const { part: { line: { result: y }, jacobian } } = step, answer = probed(step, i), C = y.columns, first = i - i % C, rows = range(C, c => first + c);
    const rateOf = j => { const n = jacobian[i].findIndex((x, k) => k % 2 === 0 && x === j); return n < 0 ? 0 : Number(jacobian[i][n + 1]); };
    const changeOf = (j, n) => { const row = answer.moved.indexOf(j); return row < 0 ? 0 : answer.values[row][n] - answer.values[row][20]; };
    for (const n of [0, 18, 22, 26, 40, 20]) {
        slide(n);
        expect(isRounding($(".knob output").textContent, (n - 20) / 20), `${where()}: the nudge is called ${$(".knob output").textContent}`);
        cellsOf("change").forEach((cell, row) => expect(isRounding(cell.textContent, changeOf(rows[row], n)), `${where()}: ${cell.textContent} and not ${changeOf(rows[row], n)}`));
        if (n !== 20) lookBars(cellsOf("change").map((cell, row) => ({ bar: cell.querySelector(".bar-d"), real: changeOf(rows[row], n), predicted: rateOf(rows[row]) * (n - 20) / 20 })));
    }
    cellsOf("per nudge").forEach(({ textContent: text }, row) => {
        const [line, made] = text.split(" = ");
        expect(isRounding(made || line, rateOf(rows[row])), `${where()}: ${text} and not ${rateOf(rows[row])}`);
        if (made) expect(Math.abs(evaluateLine(line) - numberIn(made)) <= 0.50001 * 10 ** -(made.split(".")[1] || "").length, `${where()}: ${text}`);
    });
    report.nudges++;
}

/* The lines of numbers, with brackets where the page has a frame, give the number at their end. */
function lookNumbers(x) {
    const lines = all(".algebra > .wide").map(each => {
        const copy = each.cloneNode(true);
        for (const mean of copy.querySelectorAll(".mean")) mean.textContent = `(${mean.textContent})`;
        return copy.textContent.replace(/\s/g, " ");
    }), made = lines[1]?.split(" = ")[1];
    if (x === 0) return;
    expect(isRounding(made, x), `${where()}: the lines end with ${made} and not ${x}`);
    for (const line of lines) if (!/[…·]|\.\.\./.test(line)) expect(isRounding(made, numberIn(made)) && Math.abs(evaluateLine(line.split(" = ")[0]) - numberIn(made)) <= 0.50001 * 10 ** -(made.split(".")[1] || "").length, `${where()}: ${line} is not ${made}`);
}

/* The look 2: the rule in lines, and the loss at each nudge. */
function lookAddUp(step, i) {
    const { losses } = probed(step, i), { dx } = step.part;
    for (const n of [0, 26, 40]) {
        slide(n);
        expect(isRounding(lossRow().querySelector(".num").textContent, losses[n] - losses[20]), `${where()}: the loss changes by ${lossRow().textContent}`);
    }
    if (i === (step.look ?? step.most)) lookAlgebra($(".algebra"), step.algebra);
    lookNumbers(dx[i]);
}

/* A tick is what is predicted, in each column; a number does not touch its bar. */
function lookMarks() {
    const left = each => each.getBoundingClientRect().left, names = $(".legend")?.textContent;
    for (const bar of all(".nudge .bar-v")) expect(left(bar.querySelector("s")) === left(bar), `${where()}: a weight has a tick`);
    for (const bar of all(".nudge .bar-d")) expect(bar.nextSibling.getBoundingClientRect().left - bar.getBoundingClientRect().right > 4, `${where()}: a number touches its bar`);
    expect(!$(".nudge .bar-v") || /^weight: before ?now ?change: what happens/.test(names), `${where()}: the marks are called ${names}`);
}

/* The looks by key, by their buttons, and in the address. */
async function looks(name, { id, part: { tensor }, look, most }) {
    const at = `#${name}/${id}`, i = look ?? most, cell = `g${tensor.number}.${i}`;
    const pressed = () => $(".looks [aria-pressed=true]").textContent;
    await go(at);
    expect($("#door h2").textContent.endsWith("= ?") && !$("#step .c") && cellsOf("per nudge").length && where() === at && pressed() === "1 nudge", `${where()}: it does not begin with a nudge`);
    press("ArrowRight");
    expect(where() === `${at}.3` && pressed() === "2 add up" && $(".nudged .algebra"), `${where()}: the second look is not the next one`);
    lookWide();
    lookMarks();
    lookFit();
    press("ArrowRight");
    expect(where() === `${at}.4` && pressed() === "3 the rule" && $("#step .tab.main .c"), `${where()}: the rule does not follow`);
    expect($("#words").textContent.includes("In papers: P for A") === !!state.lesson.letters, `${where()}: the letters of papers`);
    const [, second] = all(".looks button");
    second.focus();
    second.click();
    expect(where() === `${at}.3` && document.activeElement === all(".looks button")[1], `${where()}: a button of the looks loses the focus`);
    slide(30);
    press("ArrowRight", slider());
    expect(where() === `${at}.3`, `${where()}: an arrow on the slider makes a step`);
    slider().focus();
    slider().dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
    expect(document.activeElement !== slider(), `${where()}: a slider that a pointer has moved keeps the arrows`);
    await go(`${at}/${cell}`);
    expect($("#step .tab.main .chosen") && where() === `${at}/${cell}`, `${where()}: a link with a number does not show the rule`);
    press("ArrowRight");
    expect(stepNow().id !== id, `${where()}: the rule is not the last look`);
    press("ArrowLeft");
    expect(stepNow().id === id && $("#step .tab.main .c"), `${where()}: back does not lead to the rule`);
    await go(`${at}.1`);
    for (const key of ["ArrowRight", "ArrowRight", "ArrowLeft"]) press(key);
    expect(where() === `${at}.3`, `${where()}: back does not lead to the look before`);
    for (const [old, look] of [[1, "1 nudge"], [2, "1 nudge"], [3, "2 add up"], [4, "3 the rule"]]) { /* it had four looks once */
        await go(`${at}.${old}`);
        expect(pressed() === look, `${at}.${old} opens ${pressed()}`);
    }
}

/* Where answers are hidden the nudge alone is left of the looks: the others tell the rule, or, where it cannot be written, the gradient. */
async function hides(name, step) {
    const { id } = step;
    await go(`#${name}/${id}.3`);
    if (asksBeside()) revealAnswers();
    press("h");
    if (placeAt(step)) {
        expect(isRuleHidden(step) && !$("#step .nudged") && !$(".looks") && $("#door h2").textContent.endsWith("= ?"), `${where()}: a look tells the rule`);
        press("ArrowLeft");
        expect($(".nudge") && !$(".algebra") && !$("#words .text").textContent.includes("×"), `${where()}: the nudge tells the rule`);
        press("ArrowRight");
        expect(stepNow() === step && !$("#step .nudged"), `${where()}: the rule does not follow the nudge`);
        return press("h");
    }
    expect(!$(".algebra .wide") && !$(".nudge .plain") && !$("#step output.sum"), `${where()}: the gradient is not hidden`);
    press("h");
    expect(state.asked || $(".nudge .plain") && all(".algebra .wide").length, `${where()}: the gradient stays hidden`);
}

/* Another number of the table is nudged; its place stands at the slider. */
async function chooses(name, step) {
    const { part: { tensor } } = step, others = [0, tensor.value.length - 1];
    for (const i of others) {
        await go(`#${name}/${step.id}/g${tensor.number}.${i}`);
        revealAnswers();
        all(".looks button")[0].click();
        expect(where() === `#${name}/${step.id}.1/g${tensor.number}.${i}` && slider().getAttribute("aria-label").endsWith(placeWords(valueView(tensor), i)), `${where()}: another number is nudged`);
        lookWeights(step, i);
        const { columns: C, value } = step.part.line.result, row = value.slice(i - i % C, i - i % C + C);
        expect($('.sum-row td[data-k="weights"]').textContent === (row.some(p => p) ? "1" : "0"), `${where()}: the sum of ${row}`);
        press("ArrowRight");
        if (!isAskedFor(`g${tensor.number}.${i}`)) lookAddUp(step, i);
        if (value[i]) await presets(step, i);
        press("Escape");
    }
}

/* Two other rows of scores: their weights, rates and lines, until the button is pressed again. */
async function presets(step, i) {
    const { part: { tensor, line: { result: y } }, nudge: { factor = 1 } } = step, C = y.columns, first = i - i % C, row = list => list.slice(first, first + C).join(" ");
    for (const [n, op] of ["equal_scores", "one_takes_all"].entries()) {
        const other = live.answer(`nudge ${op} ${factor} ${i - first} -1 1 41 ${row(y.value)}\n${tensor.gradient}\n${y.gradient}\n${row(y.grad)}`), button = () => all(".presets button")[n];
        button().click();
        expect(button().getAttribute("aria-pressed") === "true" && document.activeElement === button(), `${where()}: ${op} is not pressed`);
        expect($("#words .text").textContent === el("p", {}, prose(other.says)).textContent, `${where()}: ${op} says ${$("#words .text").textContent}`);
        lookAlgebra($(".algebra"), other.algebra);
        expect(!$(".nudge"), `${where()}: the loss of other scores is told`);
        all(".looks button")[0].click();
        for (const m of [0, 40]) {
            slide(m);
            cellsOf("change").forEach((cell, j) => expect(isRounding(cell.textContent, other.nudge[m][j]), `${where()}, ${op}: ${cell.textContent} and not ${other.nudge[m][j]}`));
            cellsOf("weight").forEach((cell, j) => expect(isRounding(cell.textContent, other.weights[j] + other.nudge[m][j]), `${where()}, ${op}: the weight ${cell.textContent}`));
        }
        cellsOf("per nudge").forEach((cell, j) => expect(isRounding(cell.textContent.split(" = ").pop(), other.rates[j]), `${where()}, ${op}: ${cell.textContent} and not ${other.rates[j]}`));
        lookWide();
        button().click();
        expect(!$(".presets [aria-pressed=true]"), `${where()}: ${op} does not let go`);
        all(".looks button")[1].click();
    }
    all(".presets button")[0].click();
    const { hash } = location;
    await go("#" + state.lesson.name + "/0");
    await go(hash);
    expect(!$(".presets [aria-pressed=true]") || stepNow() === step, `${where()}: other scores at another step`);
    if ($(".presets [aria-pressed=true]")) all(".presets button")[0].click();
}

/* A wrong rule predicts, and the bars say what happens; it has no lines that lead to it. */
async function plantedRule() {
    await go("#2/b3.0&rule=A: A * dA");
    const step = stepNow();
    expect(step.id === "b3.0" && !$("#step .nudged") && $("#step .off"), `${where()}: a planted rule does not show its numbers`);
    expect(all(".looks button").map(each => each.textContent).join() === "1 nudge,2 the rule", `${where()}: a wrong rule has other looks`);
    all(".looks button")[0].click();
    const { line: { result } } = step.part, own = result.value[step.look];
    slide(26);
    const [rate, other] = cellsOf("per nudge").map(cell => cell.textContent);
    expect(isRounding(rate, own) && other === "0", `${where()}: the rule predicts ${rate} and ${other}`);
    expect(!$(".presets"), `${where()}: other scores under a wrong rule`);
    await go("#2/0");
}

/* One number of a product: what it meets and moves is outlined, and what moves are the numbers that the library says. */
async function product(name, step) {
    const { id, part: { tensor, line: { result: y } } } = step;
    for (const i of [0, tensor.value.length - 1]) {
        await go(`#${name}/${id}.1/g${tensor.number}.${i}`);
        const { moved, values, losses } = probed(step, i), cell = key => $(`#step .c[data-key="${key}"]`);
        slide(38);
        if (isAskedFor(`g${tensor.number}.${i}`)) expect(!lossRow() && !$("#step output.sum"), `${where()}: the answer of the question is shown`);
        if (isAskedFor(`g${tensor.number}.${i}`)) continue;
        for (const j of range(y.value.length, n => n)) {
            const shown = cell(`v${y.number}.${j}`), row = moved.indexOf(j);
            if (!shown) continue;
            expect(shown.classList.contains("source") === row >= 0, `${where()}: ${j} is ${shown.className}`);
            if (row >= 0) expect(isRounding(shown.textContent, values[row][38]), `${where()}: ${shown.textContent} and not ${values[row][38]}`);
        }
        expect(cell(`v${tensor.number}.${i}`).classList.contains("chosen") && isRounding(cell(`v${tensor.number}.${i}`).textContent, tensor.value[i] + 0.9), `${where()}: the number is not moved`);
        const met = step.part.line.inputs.find(t => t && t !== tensor && t.number !== y.number);
        const inOrder = list => list.sort((x, y) => x - y), meets = inOrder(all(`#step .c.source[data-key^="v${met.number}."]`).map(each => met.value[each.dataset.i]));
        expect(String(inOrder(values.map(list => list[40] - list[20])).map(x => x.toFixed(6))) === String(meets.map(x => x.toFixed(6))), `${where()}: it meets ${meets}`);
        expect(isRounding(lossRow().querySelector(".num").textContent, losses[38] - losses[20]), `${where()}: the loss changes by ${lossRow().textContent}`);
        const [, line, sum] = / = (.*) = (\S+)$/.exec($(".derive").textContent.trim()) || [];
        if (line && !line.includes("…") && !/[⁻·]/.test(line + sum)) expect(Math.abs(evaluateLine(line) - numberIn(sum)) <= 0.50001 * 10 ** -(sum.split(".")[1] || "").length, `${where()}: ${line} = ${sum}`);
        lookWide();
        lookMarks();
        report.nudges++;
    }
}

/* One number moves one number. */
async function each(name, step) {
    const { id, part: { tensor, line: { result: y }, jacobian } } = step, i = step.look ?? step.most;
    await go(`#${name}/${id}.1`);
    const { moved, values } = probed(step, i), [j, rate] = jacobian[i];
    slide(30);
    if (!jacobian[i].length) return;
    expect(moved.length === 1 && moved[0] === j, `${where()}: ${moved} move`);
    expect(isRounding($(".nudge .num").textContent, values[0][30] - values[0][20]), `${where()}: ${$(".nudge").textContent}`);
    expect($(".nudge").textContent.includes(bare(Number(rate))), `${where()}: the slope ${rate} is not there`);
    expect(all(`#step .c.chosen`).length === 1 && $("#step .c.chosen").dataset.key === `v${tensor.number}.${i}` && $(`.source[data-key="v${y.number}.${j}"]`), `${where()}: other numbers are outlined`);
    lookWide();
    report.nudges++;
}

/* A product that is turned over says why in two lines, but not while its numbers or its rule are to be found. */
async function turnedProduct(name, { id, algebra, title }) {
    await go(`#${name}/${id}`);
    expect($("#step .items") && /'|ᵀ/.test(title), `${where()}: ${title} is no product`);
    lookAlgebra($("#step .algebra"), algebra);
    lookWide();
    lookFit();
    press("h");
    expect(!$("#step .algebra"), `${where()}: the lines tell what is to be predicted`);
    press("h");
}

async function nudges(name) {
    await go(`#${name}`);
    if (state.keys) press("k"); /* a long lesson begins with its rules */
    for (const step of nudgedSteps("softmax")) {
        if (nudgedSteps("softmax")[0] === step) await looks(name, step);
        await hides(name, step);
        if (step.part.line.result.columns <= 8) await chooses(name, step);
    }
    for (const step of nudgedSteps("product")) await product(name, step);
    for (const step of state.lesson.steps.filter(({ algebra, nudge }) => algebra && !nudge)) await turnedProduct(name, step);
    for (const step of nudgedSteps("each")) await each(name, step);
}

/* Without the library: one recorded nudge, and no slider; of another number nothing is said but what is predicted. */
async function recorded() {
    for (const kind of ["softmax", "product", "each"]) {
        const step = nudgedSteps(kind)[0], { part: { tensor, dx }, nudge: { changes } } = step, i = step.look ?? step.most, other = dx.length - 1 - (i === dx.length - 1);
        await go(`#${state.lesson.name}/${step.id}.1`);
        expect(!slider() && $(".knob").textContent.includes("a recorded nudge") && isRounding($(".knob output").textContent, 0.3), `${where()}: no recorded nudge`);
        if (kind === "softmax") cellsOf("change").forEach((cell, c) => expect(isRounding(cell.textContent, changes[c]), `${where()}: ${cell.textContent} and not ${changes[c]}`));
        const [place, told] = kind === "softmax" ? [3, i] : [1, other]; /* only the library knows more of a row */
        await go(`#${state.lesson.name}/${step.id}.${place}/g${tensor.number}.${other}`);
        expect($(".nudge .plain").textContent.includes(fix(dx[told], { d: 2, e: 0 }).slice(0, 4)), `${where()}: ${$(".nudge .plain").textContent}`);
        if (kind === "softmax") lookAlgebra($(".algebra"), step.algebra);
        expect(!$(".presets"), `${where()}: other scores without the library`);
        report.nudges++;
    }
}

/* Tables in several lines: no line begins with a comma, and no curve crosses a table. */
async function definitions() {
    await go("#3/f8");
    if (!$("#step .items.wrap")) return;
    const tops = all("#step .grid").map(grid => grid.getBoundingClientRect().top);
    expect(all("#step .op").every(each => !each.textContent.startsWith(",")), `${where()}: a line begins with a comma`);
    expect(Math.max(...tops) - Math.min(...tops) < 60 || !$("#curves path"), `${where()}: a curve crosses tables`);
    lookWide();
}

begin(async () => {
    live = await Live.load();
    await wait();
    report.nudges = 0;
    if (WALK.refused) {
        await go("#2");
        return recorded();
    }
    for (const name of WALK.lessons) await nudges(name);
    if (WALK.lessons.includes("2")) await plantedRule();
    if (WALK.lessons.includes("3")) await definitions();
});
