/* door.js - what tests/page/test appends to a copy of a page with the library in it, behind common.js: it writes rules of
 * backward into the row of a step, by keyboard and by mouse, right ones, known mistakes and nonsense, and under "hide answers".
 * WALK.parts says which of the walks below; WALK.refused: the page has no library, and must say this. */

const text = () => $("#rule-text"), said = () => $("#rule-said").textContent.trim(), step = () => state.lesson.steps[state.step];
const isBox = () => text().getClientRects().length > 0, verdict = () => $("#verdict").textContent.trim();
const mistakes = () => [...$("#mistakes").options].map(({ value }) => value).filter(Boolean);
const pick = formula => {
    $("#mistakes").value = formula;
    $("#mistakes").dispatchEvent(new Event("change", { bubbles: true }));
};
const takeBack = () => pick("");
const show = () => all("#words button, #terms button").find(each => each.textContent === "show it");
const numbers = lesson => JSON.stringify(lesson.tape.tensors.map(t => [t.name, (t.grad || []).map(x => Number(x.toPrecision(10)))]));

/* As a reader types it. */
function type(formula) {
    text().focus();
    text().value = formula;
    text().dispatchEvent(new Event("input", { bubbles: true }));
}

function enter(formula) {
    type(formula);
    press("Enter", text());
}

/* The box at a step, by its key. */
async function openAt(hash) {
    await go(hash);
    press("w");
    expect(isBox() && document.activeElement === text(), `${hash}: w leads into no box`);
}

/* ---- the box ------------------------------------------------------------------------------------------------------ */

/* Every rule that the library knows, at every step of every lesson: it is right, and nothing changes. */
async function rightRules() {
    report.right = 0;
    for (const { number, part = "" } of WALK.lessons) {
        await go(`#${number}${part}`);
        for (let opener; (opener = all(".opener").find(each => each.textContent !== "fold"));) opener.click();
        const recorded = state.lesson, before = numbers(recorded), { places } = Controls.box();
        for (const place of places) {
            const id = `b${place.line}.${place.input}`, what = `lesson ${number}${part}, ${place.name}`;
            await openAt(`#${number}${part}/${id}.9`);
            expect(text().labels[0].textContent.startsWith("d") && text().value.length > 0 === (place.formula !== ""), `${what}: the box says ${text().value}`);
            if (!place.formula) continue;
            press("Enter", text());
            const [planted, ...more] = state.lesson.planted || [];
            expect(planted && !more.length && planted.verdict === "right" && planted.typed, `${what}: ${said()}`);
            expect(planted && planted.line === place.line && planted.input === place.input, `${what} is planted elsewhere`);
            expect(verdict() === "right" && /^It holds for other numbers, too/.test(said()) && !all(".c.off").length, `${what}: ${said()}`);
            expect(numbers(state.lesson) === before, `${what}: a right rule changes a gradient`);
            expect(text().value === planted?.formula && document.activeElement === text(), `${what}: the title is not the rule`);
            takeBack();
            expect(state.lesson === recorded && !where().includes("rule"), `${what}: it is not taken back`);
            report.right++;
        }
    }
}

/* A mistake with a name: everything that the page says of it. */
async function namedMistake() {
    const id = "b3.0", what = "lesson 2, y * dy";
    await openAt(`#2/${id}`);
    const recorded = state.lesson, right = step().part.dx.slice();
    for (const key of ["ArrowRight", "ArrowLeft", "Home", "End", "h", "e"]) press(key, text());
    expect(where().startsWith(`#2/${id}`) && isBox() && !state.hide, `${what}: the box loses a key to the page`);
    enter("y * dy");
    const link = where(), own = step().part.dx, off = all("#step .tab.main .c.off");
    const differs = own.map((x, i) => Math.abs(x - right[i]) > 1e-9);
    expect(document.activeElement === text(), `${what}: the focus leaves the box`);
    expect(verdict() === "wrong" && /^This is A \* dA, without the sum over the row\. So dS, dQ, dK are wrong, too\./.test(said()), `${what}: ${verdict()}, ${said()}`);
    expect(/^A known mistake: A \* dA, without the sum over the row\.$/.test($("#words .mistake").textContent), `${what}: it has no words`);
    expect(off.length === differs.filter(Boolean).length && off.length > 0, `${what}: ${off.length} cells are marked`);
    for (const cell of off) {
        const label = cell.getAttribute("aria-label"), i = Number(cell.dataset.i);
        expect(differs[i] && label.includes("wrong: ") && label.endsWith("is right"), `${what}: ${label}`);
        expect(getComputedStyle(cell).textDecorationStyle === "wavy" && getComputedStyle(cell, "::after").borderTopWidth !== "0px", `${what}: only a colour marks a cell`);
    }
    const worst = own.reduce((a, x, i) => (Math.abs(x - right[i]) > Math.abs(own[a] - right[a]) ? i : a), 0);
    expect($("#words").textContent.includes(` is ${bare(own[worst])}; the right number is ${bare(right[worst])}.`), `${what}: the worst number is not said`);
    expect([...all(".node.spoiled")].length >= 3 && $("#scrub .bad"), `${what}: the picture or the bar does not show it`);
    expect($("#words").textContent.includes("If one number of Z grows, what happens to the other numbers of A in its row?"), `${what}: it is not asked`);
    expect($("#door h2").textContent === "dZ = A × dA" && !said().includes("dx"),
        `${what}: ${$("#door h2").textContent} is not in the names of the lesson`);
    const [q, k] = ["Q", "K"].map(name => [state.lesson, recorded].map(lesson => String(lesson.tape.tensors.find(t => t.name === name).grad)));
    expect(q[0] !== q[1] && k[0] !== k[1], `${what}: the gradients after it do not follow`);
    await wait(400);
    expect(new Set(all("#words polyline").map(line => line.getAttribute("class"))).size === 2, `${what}: there are no losses`);
    expect(/After 200 steps of SGD the loss is [\d.]+ with this rule, and [\d.]+ with the right one/.test($("#words").textContent), `${what}: nothing is said of the losses`);
    expect($("#words").textContent.includes("only the check shows the mistake. dV is still right, and lowers it."), `${what}: it is not said that the losses hide the mistake`);
    lookWide();
    expect(decodeURIComponent(link).includes("&rule=A: y * dy"), `${what}: the address is ${link}`);
    press("Escape", text());
    expect(document.activeElement === $("#step") && where().includes("rule="), `${what}: Esc does not leave the box`);
    const seen = $("#step").textContent;
    press("ArrowRight");
    expect(!where().startsWith(`#2/${id}`) && where().includes("rule="), `${what}: the arrows do not step after it`);
    expect(!$("#door .tick.right") && $("#door .tick").title.includes("its numbers come from a wrong rule above"), `${what}: the step after it has a green tick`);
    expect(/^dZ has a wrong rule: dZ, dS, dQ, dK are wrong\./.test(said()) && $("#rule-said a").getAttribute("href").startsWith(`#2/${id}`), `${what}: the next step says ${said()}`);
    press("ArrowLeft");
    expect(text().value === "y * dy" && $("#step").textContent === seen, `${what}: the step does not come back`);
    for (const address of [link, link.replace("&rule=", "&break="), "#2/b3.0&rule=A:y*dy"]) {
        await go("#1");
        await go(address);
        expect(step().id === id && isBox() && /without the sum/.test(said()) && all(".c.off").length === off.length, `${address} does not lead back: ${said()}`);
    }
    enter("y * dz");
    expect(/At character 5: there is no dz here/.test(said()) && state.lesson.planted[0].formula === "y*dy", `${what}: an error takes the rule away`);
    expect(verdict() === "not read", `${what}: what cannot be read is ${verdict()}`);
    enter("A * (dA - sum(A * dA))");
    expect(verdict() === "right" && !all(".c.off").length && state.lesson.planted.length === 1, `${what}: mended: ${said()}`);
    for (const [key, at] of [["ArrowRight", 0], ["ArrowLeft", 99], ["ArrowLeft", 0]]) {
        text().setSelectionRange(at, at);
        press(key, text());
        expect(step().id === id && document.activeElement === text(), `${what}: ${key} in the right rule leaves its step`);
    }
    text().setSelectionRange(99, 99);
    press("ArrowRight", text());
    expect(step().id !== id && document.activeElement === $("#step"), `${what}: at the end of a right rule → does not go on`);
    press("ArrowLeft");
    press("w");
    expect(step().id === id && verdict() === "right" && / Go on: →\./.test(said()), `${what}: back at the right rule: ${said()}`);
    const looks = all(".looks button");
    expect(looks.length === 3, `${what}: a right rule leaves ${looks.length} of 3 looks`);
    looks[1]?.click();
    expect($("#step .algebra"), `${what}: a right rule is not derived`);
    toRule();
    type("");
    press("ArrowUp", text());
    expect(text().value === "A * (dA - sum(A * dA))", `${what}: up does not show what was tried: ${text().value}`);
    press("ArrowUp", text());
    press("ArrowUp", text());
    expect(text().value === "y * dy", `${what}: nor what was tried before: ${text().value}`);
    takeBack();
    expect(state.lesson === recorded && text().value === "A * (dA - sum(A * dA))" && verdict() === "checked", `${what}: the right rule does not come back: ${state.lesson === recorded}, ${text().value}, ${verdict()}`);
    report.mistakes = 1;
}

/* Every address of former days leads where it led. */
async function oldAddresses() {
    for (const [number, key] of [["2", "softmax"], ["3", "mask"], ["4", "transpose"], ["4", "dropout"], ["4", "assign"]]) {
        for (const word of ["rule", "break"]) {
            await go(`#${number}/f1&${word}=${key}`);
            expect(state.lesson.rule === key && where() === `#${number}/f1&rule=${key}`, `${word}=${key}: ${where()}`);
        }
        const red = state.lesson.steps.find(each => each.check === "wrong");
        await go(`#${number}/${red.id}&rule=${key}`);
        if (key !== "assign") expect($("#words").textContent.includes("A known mistake"), `rule=${key}: ${$("#words").textContent.slice(0, 60)}`);
    }
    const hidden = () => state.hide && isRuleHidden(step()), former = [
        ["#2/b3.0&exercise", "#2/b3.0&hide", hidden], ["#2/b4.0&predict", "#2/b4.0&hide", hidden], ["#2/b3.0&hide", "#2/b3.0&hide", hidden],
        ["#2/b6.0&exercise", "#2/b6.0&hide", () => hidden() && !step().unit.isFold], ["#5/f3&exercise", "#5/f3&hide", () => state.hide],
        ["#2/b3.0.2", "#2/b3.0", () => $(".nudge")], ["#2/b3.0.3", "#2/b3.0.3", () => $(".algebra")], ["#2/b3.0.4", "#2/b3.0.4", () => $("#step .tab.main")], ["#2/b2.0&try", "#2/b2.0&try", () => $("#try-at")],
        ["#2/card", "#2/card", () => step().kind === "card"], ["#present", `#${firstLesson.name}/0&present`, () => isPresenting() && !$("#notice").textContent], ["#2/f3&present", "#2/f3&present", () => isPresenting() && state.hide],
        ["#5/b17.1&present=key", "#5/b17.1&present=key", () => isPresenting() && state.keys],
        /* a known step is shown where it is asked for, among all steps */
        ["#5/b22.0&present=key", "#5/b22.0&present", () => isPresenting() && !state.keys], ["#5/f3&heads=1", "#5/f3&heads=1", () => Controls.isChanged()],
        ["#2/f3&rule=softmax&compare=1", "#2/f3&rule=softmax&compare=1", () => state.compare], ["#lesson=2&step=12&cell=g4.3", "#2/b5.0/g4.3", () => step().id === "b5.0"],
        ["#2/12", "#2/b5.0", () => step().id === "b5.0"], ["#2/f3&set=0,0.5,Q", "#2/f3&set=0,0.5,Q", () => state.lesson.tape.tensors.find(t => t.name === "Q").value[0] === 0.5],
        ["#6/sgd&sgd=3", "#6/sgd&sgd=3", () => stepsTaken(state.lesson) === 3], ["#2/b3.0&break=A:y*dy", "#2/b3.0&rule=A%3A%20y*dy", () => verdict() === "wrong"]];
    for (const [address, wanted, holds] of former) {
        state.hide = false;
        await go(address);
        expect(where() === wanted && holds(), `${address} leads to ${where()}`);
        if (isPresenting()) present(false);
    }
    state.hide = false;
    await go("#2/b3.0&rule=nothing");
    expect($("#notice").textContent.includes('there is no rule "nothing"') && where() === "#2/b3.0", `rule=nothing: ${where()}`);
    await go("#2/b3.0&rule=A:%20y%20*%20dz");
    expect($("#notice").textContent.includes("column 5") && !hasRules(state.lesson), `a wrong formula in an address: ${$("#notice").textContent}`);
}

/* Wrong rules without a name, one that is no gradient, and one that is right for these numbers only. */
async function otherRules() {
    const wrong = [["2/b3.0", "y * y * y * dy", /^The size is right, the numbers are not\./], ["2/b3.0", "dA * dA", /^This does not double when dA doubles/], ["2/b3.0", "-y * (dy - sum(y * dy))", /the other sign/],
        ["2/b4.1", "0", /This is 0 everywhere/], ["2/b3.0", "A * (dA - sum(A) * dA)", /^This is 0 everywhere, but for rounding\./], ["4/b7.0", "dA_p * kept", /without the factor 1/], ["4/b1.0", "dK @ W_k'", /must not be transposed/], ["2/b2.0", "dZ", /without the factor 0\.5/], ["6/b5.2", "sum0(dP) / 4", /the mean of dP/]];
    for (const [at, formula, words] of wrong) {
        await openAt("#" + at);
        enter(formula);
        expect(words.test(said()) && all("#step .tab.main .c.off").length > 0, `${at}: ${formula}: ${said()}`);
        expect(all(".c.off").every(cell => !/\d{6}/.test(cell.getAttribute("aria-label"))), `${at}: ${formula}: a right number has the digits of a wrong one`);
        expect($("#door .tick.wrong") && $("#words .text").textContent.includes("the right number is"), `${at}: ${formula}: the check is not red`);
        await wait(1);
        lookWide();
        Controls.setCompare(true);
        expect($(".both") && $("#door h2").textContent.includes("wrong rule and right rule"), `${at}: ${formula}: both rules are not side by side`);
        Controls.setCompare(false);
        drawPaper();
        expect(all("#paper .sheet").length === shownSteps(state.lesson).length - 1, `${at}: ${formula}: it is not printed`);
        clearPaper();
        takeBack();
    }
    const equal = "&keys=2&set=0,1,V&set=1,2,V&set=2,2,V&set=3,1,V"; /* V is its own transpose */
    await openAt("#2/b4.0" + equal);
    enter("dY @ V'");
    expect(verdict() === "right", `with typed numbers: ${said()}`);
    enter("dY @ V");
    expect(/^This is right for these numbers, but not for all\. This is dY times V, where V is not transposed/.test(said()), `a transpose less: ${said()}`);
    expect(verdict() === "by chance", `a transpose less is ${verdict()}`);
    takeBack();
    expect(where().includes("set=") && !hasRules(state.lesson), "the typed numbers are taken back, too");
    await go("#2/b4.0&hide" + equal);
    enter("dY @ V");
    expect(/^This is right for these numbers, but not for all/.test(said()) && isUnwritten(step()), `a transpose less is written: ${said()}`);
    expect($("#door h2").textContent === "dA = dY @ V" && all("#step .tab").length === 2 && !$(".opens"), "the step of such a rule shows the right one");
    enter("dY @ V'");
    expect(/^It holds for other numbers, too/.test(said()) && !isUnwritten(step()), `then ${said()}`);
    await go("#2/b6.0&hide");
    enter("2 * E");
    expect(verdict() === "wrong" && !$("#words").textContent.includes("right number"), `dy forgotten where it is 1: ${said()}`);
    await wait(400);
    expect(!all(".c.off").length && !$("#words .training"), "where no number differs, a loss does");
    press("e");
    expect(!state.hide && !hasRules(state.lesson), "e does not show the answers");
    forgetKept();
    await go("#1");
}

/* Nonsense gets its place, and changes nothing. */
async function nonsense() {
    await openAt("#2/b3.0");
    const recorded = state.lesson, sizes = ["dA @ A", "y dy"], cases = [["y * dz", 5, "d"], ["y * (dy - sum(y * dy)", 5, "("], ["y $ dy", 3, "$"], ["dA @ A", 4, "@"], ["y dy", 3, "d"], ["sum", 1, "s"]];
    for (const [formula, column, sign] of cases) {
        type(formula);
        expect(!$("#rule-said .error"), `${formula}: an error before the reader stops`);
        await wait(500);
        expect(verdict() === (sizes.includes(formula) ? "sizes" : "not read") && $("#rule-said").textContent.startsWith(`At character ${column}: `), `${formula}: ${verdict()}: ${said()}`);
        expect($(".mirror mark").textContent === sign && text().getAttribute("aria-invalid") === "true", `${formula}: its place is not marked`);
        press("Enter", text());
        expect(state.lesson === recorded && document.activeElement === text() && where() === "#2/b3.0", `${formula}: something changes`);
    }
    type("y * ");
    await wait(500);
    expect(said().startsWith("At the end: "), `y *: ${said()}`);
    type("y * dy");
    await wait(500);
    expect(!said() && !$(".mirror mark") && state.lesson === recorded, `a formula that is whole: ${said()}`);
    enter("   ");
    expect(said().includes("Write a formula first."), `nothing: ${said()}`);
    enter("A × (dA − sum(A·dA))");
    expect(verdict() === "right", `the signs of a phone: ${said()}`);
    takeBack();
    enter("y * dy\nset 0 9 Q");
    expect(state.lesson === recorded && said(), "a newline begins a setting of the request");
    press("Escape", text());
}

/* All by mouse, and what the box says of itself. */
async function byMouse() {
    await go("#2/b3.0");
    toRule();
    expect(isBox() && !$(".names").getClientRects().length, "a step has no box, or names stand there before one writes");
    const field = getComputedStyle(text()), mirror = getComputedStyle($(".mirror"));
    expect(parseFloat(field.fontSize) >= 16, `the box has type of ${field.fontSize}`);
    expect(field.fontFamily === mirror.fontFamily && field.fontSize === mirror.fontSize && text().clientWidth === $(".mirror").clientWidth, "the marks stand at other places than the text");
    expect(text().labels.length === 1 && text().labels[0].textContent === "dZ =", "the box has no name");
    expect($("#rule-said").getAttribute("role") === "status", "the judgement is not told to screen readers");
    expect(text().value === "A * (dA - sum(A * dA))" && verdict() === "checked", `the right rule is not there: ${text().value}`);
    type("");
    expect($(".names").getClientRects().length > 0, "no names stand there while one writes");
    const chip = name => all(".chip").find(each => each.firstChild.textContent === name);
    for (const name of ["A", "*", "dA"]) {
        expect(!chip(name).dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true })), "a name takes the focus");
        chip(name).click();
    }
    expect(text().value === "A * dA" && document.activeElement === text(), `the names write ${text().value}`);
    $("#b-help").click();
    $(".language summary").click();
    for (const word of ["sum0(x)", "the product of tables", "dA", "the result"]) expect($(".language").textContent.includes(word), `the language has no ${word}`);
    $(".language summary").click();
    $("#help").close();
    await wait();
    for (const control of all("#door :is(button, select)")) if (control.getClientRects().length) {
        const { width, height } = control.getBoundingClientRect();
        expect(width >= 24 && height >= 24, `${control.textContent} is ${width} by ${height}`);
    }
    $("#door .judge").click();
    expect(/without the sum/.test(said()), `judge: ${said()}`);
    takeBack();
    expect(!hasRules(state.lesson), "take back does nothing");
    await go("#2/f3");
    expect(!isBox() && $("#door h2").getClientRects().length > 0, `a step forward has a box: ${where()}`);
    await go("#2/b7.0");
    press("w");
    expect(isBox() && !step().unit.isFold, "w does not unfold the lines of a step");
    text().focus();
    text().value = "dy * 2 + ".repeat(30) + "dy";
    text().dispatchEvent(new Event("input", { bubbles: true }));
    expect(text().scrollHeight <= text().clientHeight + 2, "a long formula does not fit into its box");
    lookWide();
    press("Escape", text());
}

/* ---- the exercises ------------------------------------------------------------------------------------------------ */

/* All that can be read, or heard. */
const readable = () => ["#door", "#step", "#words", "#program", "#announce", "#panel", "#bar", "#machine", "#notice"].map(part => $(part)).filter(part => part.getClientRects().length || part.id === "announce")
    .map(part => (part.innerText ?? part.textContent) + [...part.querySelectorAll("*")].map(each => (each.getAttribute("aria-label") || "") + (each.title || "")).join(" ")).join(" ") + text().value + text().placeholder;

/* What must not be read while the rule of the step is hidden. */
function secretsOf() {
    const program = state.lesson.program?.find(each => each.line === step().unit.line), [, right] = /[=←] (.*)$/s.exec($("#door h2").textContent);
    return { right, arrives: nameEl(step().unit.result.gradient).textContent, words: $("#words .text").textContent, formula: Controls.box().places.find(place => `b${place.line}.${place.input}` === step().id)?.formula,
        sources: (program?.backward || []).map(n => sources[n].text.split("\n").reduce((a, b) => (b.trim().length > a.length ? b.trim() : a), "")) };
}

function expectHidden(secret, what) {
    const read = readable();
    if (secret.right.length > 3 && secret.right !== secret.arrives) expect(!read.includes(secret.right), `${what}: the rule ${secret.right} can be read`);
    if (secret.formula.length > 5) expect(!read.includes(secret.formula), `${what}: the formula ${secret.formula} can be read`);
    expect(!read.includes(secret.words), `${what}: the words can be read`);
    for (const line of secret.sources) expect(!read.includes(line), `${what}: the C can be read: ${line}`);
    expect(!$("#terms .fac") && !$(".looks") && !$(".nudged") && !mistakes().length && !$(".opens") && $("#program").hidden && !$("#words form.question"), `${what}: something tells the rule`);
}

async function writeAll() {
    report.written = 0;
    for (const { number, part = "" } of WALK.lessons) {
        const name = `${number}${part}`;
        await go(`#${name}`);
        for (const group of state.lesson.groups) if (!group.isMoves && !state.lesson.open.has(group.id)) toggleGroup(group);
        const secrets = new Map(), titles = new Map(), wanted = stepsToWrite().map(each => each.id);
        for (const id of wanted) {
            await go(`#${name}/${id}`);
            toRule();
            secrets.set(id, secretsOf());
            titles.set(id, $("#door h2").textContent);
        }
        press("h");
        expect(state.hide && where().endsWith("&hide") && stepNow().id === wanted[wanted.length - 1], `lesson ${name}: h leads to ${where()}`);
        for (const [n, id] of wanted.entries()) {
            await go(`#${name}/${id}`);
            for (let looks = 0; looks < 3 && isNudging(); looks++) press("ArrowRight");
            await writeHidden(`lesson ${name}, ${id}`, secrets.get(id), titles.get(id), n);
        }
        expect(!stepsToWrite().some(isUnwritten), `lesson ${name}: rules are left`);
        press("End");
        const [, done, of] = /(\d+) of (\d+) rules written/.exec($("#words").textContent) || [];
        expect(Number(of) === wanted.length && Number(done) === wanted.length - 1, `lesson ${name}: the tally is ${done} of ${of}, not ${wanted.length - 1} of ${wanted.length}`);
        press("e");
        expect(!state.hide && !where().includes("hide"), `lesson ${name}: e does not show the answers`);
    }
}

/* Wrong, wrong with a hint, right; the first one of a lesson is given up, of the second one a number is guessed. */
async function writeHidden(what, secret, title, n) {
    const main = () => all("#step .tab.main .c"), recorded = state.lesson, place = placeAt(step());
    expect(text().value === "" && $("#door h2").textContent.endsWith("= ?") && main().every(cell => cell.textContent === "?"), `${what}: something is shown`);
    expect(all("#step .tab").length === 2 && /= \?\. /.test($("#announce").textContent) && /^Hidden until it is written/.test(said()), `${what}: there are other tables, or words: ${said()}`);
    expectHidden(secret, what);
    for (const cell of main().slice(0, 2)) cell.click();
    expectHidden(secret, `${what}, a cell`);
    settleMotion();
    lookWide();
    if (n === 0) {
        show().click();
        expect($("#door h2").textContent === title && text().value.length > 0 && verdict() === "shown", `${what}: show it does not show it`);
        return;
    }
    if (n === 1) for (const paper of ["lesson", "worksheet of all steps"]) {
        printed = paper;
        drawPaper();
        const at = state.lesson.steps.indexOf(step()), sheet = all("#paper .sheet")[at - 1];
        expect(/ = \?(,|$)/.test(sheet.querySelector("h2").textContent) && !sheet.textContent.includes(secret.words), `${what}: the ${paper} prints the rule`);
        if (paper !== "lesson") expect($("#paper .answers").textContent.includes(secret.right), `${what}: the answers have no rule`);
        clearPaper();
    }
    enter("0");
    expect(verdict() === "wrong" && hasRules(state.lesson) && document.activeElement === text(), `${what}: 0: ${said()}`);
    expect(!$("#rule-said .hint"), `${what}: a hint after one try`);
    expectHidden({ ...secret, right: "" }, `${what}, wrong`);
    enter("0 + 0");
    expect($("#rule-said .hint"), `${what}: no hint after two tries: ${said()}`);
    expectHidden({ ...secret, right: "" }, `${what}, wrong twice`);
    if (n === 1) {
        press("Escape", text());
        press("ArrowRight");
        expect(!hasRules(state.lesson) && !where().includes("rule="), `${what}: a wrong try stays behind`);
        press("ArrowLeft");
        expectHidden(secret, `${what}, back`);
    }
    enter(place.shown);
    expect($("#door h2").textContent === title, `${what}: the step is not shown: ${$("#door h2").textContent}, not ${title}`);
    expect(verdict() === "right" && /^It holds for other numbers, too\. \d+ of \d+ rules written\./.test(said()) && !hasRules(state.lesson) && (state.asked || main().every(cell => cell.textContent !== "?")), `${what}: ${said()}`);
    expect(state.lesson === recorded && (state.asked || $("#words .text").textContent === secret.words), `${what}: the words do not come back`);
    report.written++;
}

/* A number of a cell answers a step, too; the rule that is shown then is none of the reader's. */
async function guessed() {
    forgetKept();
    await go("#2/b4.0.2&hide");
    const guess = $("#terms .guess input"), { numbers } = picture.main;
    guess.value = String(numbers[0] + 9);
    guess.form.requestSubmit();
    expect($("#terms .said").textContent.startsWith("Not yet") && isUnwritten(step()), `a wrong guess says ${$("#terms").textContent}`);
    $(".tab.main .c").click();
    const field = $("#terms .guess input");
    field.value = numbers[0].toFixed(2);
    field.form.requestSubmit();
    expect($("#door h2").textContent.replace(/\s+/g, " ").startsWith("dA = dY V") && verdict() === "shown" && $("#terms").textContent.includes("You said") && /0 of \d+ rules written/.test(said()), `a right guess shows ${$("#door h2").textContent}, ${said()}`);
    press("h");
    await go("#2/b2.0.2&hide");
    const factor = $("#terms .guess input"), arrives = tablesIn(picture).find(view => !view.isMain);
    factor.value = String(arrives.numbers[Number(defaultKey().split(".")[1])]);
    factor.form.requestSubmit();
    expect($("#terms .said").textContent === "Not yet. That is the number of dZ.", `a number that arrives is said to be ${$("#terms .said").textContent}`);
    press("h");
    forgetKept();
}

/* Each known mistake, chosen and typed: the same name and the same marks. */
async function knownMistakes() {
    report.mistakes = 0;
    for (const { number, part = "" } of WALK.lessons) {
        await go(`#${number}${part}`);
        for (const group of state.lesson.groups) if (!state.lesson.open.has(group.id)) toggleGroup(group);
        const recorded = state.lesson, marks = () => all(".c.off").map(cell => cell.dataset.key).join();
        for (const place of Controls.box().places) {
            const what = `lesson ${number}${part}, ${place.name}`;
            await go(`#${number}${part}/b${place.line}.${place.input}`);
            for (let looks = 0; looks < 4 && isNudging(); looks++) press("ArrowRight");
            expect(mistakes().join() === place.mistakes.map(({ formula }) => formula).join(), `${what}: the mistakes are ${mistakes()}`);
            const at = () => $("#door").offsetTop + $("#below").offsetTop, top = at();
            for (const formula of mistakes()) {
                pick(formula);
                const { mistake } = plantedAt(step()) || {}, seen = marks();
                expect(all("#door b, #words b").every(each => !each.textContent.includes("ᵀ")), `${what}: ${formula} has a bold ᵀ, which looks like another letter`);
                expect(verdict() === "wrong" && text().value === formula && place.mistakes.some(({ id }) => id === mistake), `${what}: ${formula} is ${verdict()}, ${mistake}`);
                expect(at() === top, `${what}: ${formula} moves the step from ${top} to ${at()}`);
                enter(formula);
                expect(plantedAt(step())?.mistake === mistake && marks() === seen, `${what}: ${formula} is another mistake when it is typed`);
                report.mistakes++;
            }
            if (mistakes().length) takeBack();
            expect(state.lesson === recorded, `${what}: a mistake stays`);
        }
    }
}

/* At an addition the rule is +=, and the mistake is =. */
async function sums() {
    await go("#4/a0.0");
    const recorded = state.lesson, at = text().value, parts = step().part.tensor.parts.length;
    expect(text().readOnly && at.split(" + ").length === parts && mistakes().join() === at.split(" + ").pop() && !$("#door .judge").getClientRects().length, `an addition has ${at}, ${mistakes()}`);
    pick(mistakes()[0]);
    expect(state.lesson.rule === "assign" && where().includes("rule=assign") && text().value === at.split(" + ").pop() && verdict() === "wrong", `= says ${verdict()}: ${said()}`);
    takeBack();
    expect(state.lesson === recorded && text().value === at, "the addition does not come back");
}

/* Tape, row and step stand at the same place at every step and look of a lesson, with answers and without. */
async function equalTops() {
    for (const { number, part = "" } of WALK.lessons) for (const hides of ["", "&hide"]) {
        await go(`#${number}${part}/f0${hides}`);
        if (state.keys) press("k");
        const at = () => ["#machine", "#door", "#step"].map(each => Math.round($(each).getBoundingClientRect().top + scrollY)).join(), first = at();
        for (let presses = 0; presses < 99 && !isLastStep(); presses++) {
            expect(at() === first, `${where()}: tape, row and step begin at ${at()}, and not at ${first}: ${text().value} ${said()}`);
            press("ArrowRight");
        }
        expect(isLastStep() && at() === first, `${where()}: at the end they begin at ${at()}, and not at ${first}`);
        state.hide = false;
    }
}

/* Seven commands, and no more: presenting is in Share. */
async function bar() {
    for (const hash of ["#2/b3.0", "#1/f1", "#5/b17.1"]) {
        await go(hash);
        const ids = all("header button, #bar button").filter(each => each.getClientRects().length).map(({ id }) => id);
        expect(ids.filter(id => id !== "skip").join() === "b-example,b-share,b-help,back,next,hide" && ids.includes("skip") === (keySteps(state.lesson).size < state.lesson.steps.length), `${hash}: the commands are ${ids}`);
    }
    $("#b-share").click();
    $("#present").click();
    expect(isPresenting() && state.hide && $("#panel").hidden, "Share does not present");
    press("p");
    expect(!isPresenting(), "p does not end it");
    state.hide = false;
}

/* A page that is opened by a link that hides the answers. */
async function opened() {
    expect(state.hide && $("#door h2").textContent === "dZ = ?" && !text().value && !$("#step .fac"), `the link shows ${$("#door h2").textContent}`);
    $("#hide").click();
    toRule();
    expect(!state.hide && $("#door h2").textContent.includes("sum(A"), "the button does not show the answers");
    $("#hide").click();
    expect(state.hide && $("#door h2").textContent === "dZ = ?", "the button does not hide them");
}

/* Without the library a rule stands there to be read, and the line under it says why; numbers alone can be hidden. */
async function refused() {
    await go("#2/b3.0");
    toRule();
    press("w");
    expect(!isBox() && $("#door h2").textContent.includes("sum(A") && said().includes(WALK.refused), `the row says ${said()}`);
    press("h");
    expect(state.hide && all("#step .tab.main .c").every(cell => cell.textContent === "?") && $("#door h2").textContent.includes("sum(A"), "h hides no numbers, or a rule that cannot be written");
    press("h");
}

begin(async () => {
    await wait(20);
    const walks = { rightRules, namedMistake, oldAddresses, otherRules, nonsense, byMouse, guessed, knownMistakes, sums, bar, equalTops, writeAll, opened, refused };
    for (const name of WALK.parts) await walks[name]();
});
