/* rulebox.js - what tests/page/test appends to a copy of a page with the library in it, behind common.js: it writes rules of
 * backward into the box of a step, by keyboard and by mouse, right ones, wrong ones and nonsense, and does the exercises.
 * WALK.parts says which of the walks below; WALK.refused: the page has no library, and must say this. */

const text = () => $("#rule-text"), said = () => $("#rule-said").textContent.trim(), step = () => state.lesson.steps[state.step];
const isOpen = () => !$("#rule-box").hidden && text().getClientRects().length > 0;
const button = name => all("#rule-box button").find(each => each.textContent === name && !each.hidden);
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

/* The box at a step, opened by its key. */
async function openAt(hash) {
    await go(hash);
    press("w");
    expect(isOpen() && document.activeElement === text(), `${hash}: w opens no box`);
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
            await openAt(`#${number}${part}/${id}`);
            expect(text().labels[0].textContent.startsWith("d") && text().value.length > 0 === (place.formula !== ""), `${what}: the box says ${text().value}`);
            if (!place.formula) continue;
            press("Enter", text());
            const [planted, ...more] = state.lesson.planted || [];
            expect(planted && !more.length && planted.verdict === "right" && planted.typed, `${what}: ${said()}`);
            expect(planted && planted.line === place.line && planted.input === place.input, `${what} is planted elsewhere`);
            expect(said() === "Right." && !all(".c.off").length, `${what}: ${said()}`);
            expect(numbers(state.lesson) === before, `${what}: a right rule changes a gradient`);
            expect($("#step .rule h2 code").textContent === planted?.formula, `${what}: the title is not the rule`);
            expect($("#state").textContent.includes("It is right"), `${what}: ${$("#state").textContent}`);
            button("take back").click();
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
    expect(where().startsWith(`#2/${id}`) && isOpen() && !state.hide && !state.exercise, `${what}: the box loses a key to the page`);
    enter("y * dy");
    const link = where(), own = step().part.dx, off = all("#step .tab.main .c.off");
    const differs = own.map((x, i) => Math.abs(x - right[i]) > 1e-9);
    expect(document.activeElement === $("#step"), `${what}: the focus stays in the box`);
    expect(/Wrong\. It is A \* dA, without the sum over the row\./.test(said()), `${what}: ${said()}`);
    expect(off.length === differs.filter(Boolean).length && off.length > 0, `${what}: ${off.length} cells are marked`);
    for (const cell of off) {
        const label = cell.getAttribute("aria-label"), i = Number(cell.dataset.i);
        expect(differs[i] && label.includes("wrong: ") && label.endsWith("is right"), `${what}: ${label}`);
        expect(getComputedStyle(cell).textDecorationStyle === "wavy" && getComputedStyle(cell, "::after").borderTopWidth !== "0px", `${what}: only a colour marks a cell`);
    }
    const worst = own.reduce((a, x, i) => (Math.abs(x - right[i]) > Math.abs(own[a] - right[a]) ? i : a), 0);
    expect(said().includes(` is ${bare(own[worst])}; the right number is ${bare(right[worst])}.`), `${what}: the worst number is not said: ${said()}`);
    expect($("#words").textContent.includes("If one number of Z grows, what happens to the other numbers of A in its row?"), `${what}: it is not asked`);
    expect($("#step .rule h2").textContent === "dZ = A × dA" && !$("#step .tick.wrong").textContent.includes("dx"),
        `${what}: ${$("#step .rule").textContent} is not in the names of the lesson`);
    const [q, k] = ["Q", "K"].map(name => [state.lesson, recorded].map(lesson => String(lesson.tape.tensors.find(t => t.name === name).grad)));
    expect(q[0] !== q[1] && k[0] !== k[1], `${what}: the gradients after it do not follow`);
    await wait(400);
    expect(new Set(all("#words polyline").map(line => line.getAttribute("class"))).size === 2, `${what}: there are no losses`);
    expect(/After 200 steps of SGD the loss is [\d.]+ with this rule, and [\d.]+ with the right one/.test($("#words").textContent), `${what}: nothing is said of the losses`);
    expect($("#words").textContent.includes("only the check shows the mistake. dV is still right, and lowers it."), `${what}: it is not said that the losses hide the mistake`);
    lookWide();
    expect(decodeURIComponent(link).includes("&rule=A: y * dy"), `${what}: the address is ${link}`);
    const seen = $("#step").textContent;
    press("ArrowRight");
    expect(!where().startsWith(`#2/${id}`) && !isOpen() && where().includes("rule="), `${what}: the arrows do not step after it`);
    expect(!$("#step .tick.right") && $("#step .tick").textContent.includes("its numbers come from a wrong rule above"), `${what}: the step after it has a green tick`);
    press("ArrowLeft");
    expect(isOpen() && text().value === "y * dy" && $("#step").textContent === seen, `${what}: the step does not come back`);
    for (const address of [link, link.replace("&rule=", "&break="), "#2/b3.0&rule=A:y*dy"]) {
        await go("#1");
        await go(address);
        expect(step().id === id && isOpen() && /without the sum/.test(said()) && all(".c.off").length === off.length, `${address} does not lead back: ${said()}`);
    }
    enter("y * dz");
    expect(/At character 5: there is no dz here/.test(said()) && state.lesson.planted[0].formula === "y*dy", `${what}: an error takes the rule away`);
    press("Escape", text());
    expect(!isOpen() && document.activeElement === $("#step") && where().includes("rule="), `${what}: Esc does not close the box`);
    press("w");
    enter("A * (dA - sum(A * dA))");
    expect(said() === "Right." && !all(".c.off").length && state.lesson.planted.length === 1, `${what}: mended: ${said()}`);
    button("take back").click();
    expect(state.lesson === recorded && $("#state").hidden, `${what}: the right rule does not come back`);
    report.mistakes = 1;
}

/* Rules that the menu "break it" plants by its old keys: the addresses still work. */
async function oldAddresses() {
    for (const [number, key] of [["2", "softmax"], ["3", "mask"], ["4", "transpose"], ["4", "dropout"], ["4", "assign"]]) {
        for (const word of ["rule", "break"]) {
            await go(`#${number}/f1&${word}=${key}`);
            expect(state.lesson.rule === key && where() === `#${number}/f1&rule=${key}`, `${word}=${key}: ${where()}`);
        }
        const red = state.lesson.steps.find(each => each.check === "wrong");
        await go(`#${number}/${red.id}&rule=${key}`);
        if (key !== "assign") expect($("#words").textContent.includes("This rule is wrong"), `rule=${key}: ${$("#words").textContent.slice(0, 60)}`);
    }
    await go("#2/b3.0&rule=nothing");
    expect($("#notice").textContent.includes('there is no rule "nothing"') && where() === "#2/b3.0", `rule=nothing: ${where()}`);
    await go("#2/b3.0&rule=A:%20y%20*%20dz");
    expect($("#notice").textContent.includes("column 5") && !hasRules(state.lesson), `a wrong formula in an address: ${$("#notice").textContent}`);
}

/* Wrong rules without a name, one that is no gradient, and one that is right for these numbers only. */
async function otherRules() {
    const wrong = [["2/b3.0", "y * y * y * dy", /^Wrong\. d/], ["2/b3.0", "dA * dA", /Wrong\. It does not double when dA doubles/], ["2/b3.0", "-y * (dy - sum(y * dy))", /the other sign/],
        ["2/b4.1", "0", /It is 0 everywhere/], ["4/b7.0", "dA_p * kept", /without the factor 1/], ["4/b1.0", "dK @ W_k'", /must not be transposed/], ["2/b2.0", "dZ", /without the factor 0\.5/], ["6/b5.2", "sum0(dP) / 4", /the mean of dP/]];
    for (const [at, formula, words] of wrong) {
        await openAt("#" + at);
        enter(formula);
        expect(words.test(said()) && all("#step .tab.main .c.off").length > 0, `${at}: ${formula}: ${said()}`);
        expect($("#step .tick.wrong"), `${at}: ${formula}: the check is not red`);
        await wait(1);
        lookWide();
        Controls.setCompare(true);
        expect($(".both") && $("#step .rule h2").textContent.includes("wrong rule and right rule"), `${at}: ${formula}: both rules are not side by side`);
        Controls.setCompare(false);
        drawPaper();
        expect(all("#paper .sheet").length === shownSteps(state.lesson).length - 1, `${at}: ${formula}: it is not printed`);
        clearPaper();
        button("take back").click();
    }
    await go("#2/f0");
    $("#b-break").click();
    $('[data-rule="softmax"]').click();
    expect(where().startsWith("#2/b3.0") && !isOpen(), `the menu leads to ${where()}, and the box for a rule takes the room of the step`);
    if (innerWidth >= 1100) expect($("#step .items").getBoundingClientRect().bottom <= innerHeight, "a broken rule moves the step out of the window");
    $("#b-break").click();
    expect($('[data-rule="softmax"]').textContent.includes("dZ = A × dA"), `the menu says ${$('[data-rule="softmax"]').textContent}`);
    $("#panel .top button").click();
    expect(!hasRules(state.lesson), "the menu does not put the right rule back");
    $("#panel .close").click();
    const equal = "&keys=2&set=0,1,V&set=1,2,V&set=2,2,V&set=3,1,V"; /* V is its own transpose */
    await openAt("#2/b4.0" + equal);
    enter("dY @ V'");
    expect(said() === "Right.", `with typed numbers: ${said()}`);
    enter("dY @ V");
    expect(/^It is right for these numbers, but not for all\. It is dY times V, where V is not transposed/.test(said()), `a transpose less: ${said()}`);
    button("take back").click();
    expect(where().includes("set=") && !hasRules(state.lesson), "the typed numbers are taken back, too");
    await go("#2/b4.0&exercise" + equal);
    enter("dY @ V");
    expect(/^It is right for these numbers, but not for all/.test(said()) && unwrittenAt(step()), `a transpose less is written: ${said()}`);
    expect($("#step .rule h2").textContent === "dA = dY @ V" && all("#step .tab").length === 2 && !$(".opens"), "the step of such a rule shows the right one");
    enter("dY @ V'");
    expect(/^Right\./.test(said()) && !unwrittenAt(step()), `then ${said()}`);
    await go("#2/b6.0&exercise");
    enter("2 * E");
    expect(/^Wrong\b/.test(said()) && !said().includes("right number"), `dy forgotten where it is 1: ${said()}`);
    await wait(400);
    expect(!$("#step .tick") && !all(".c.off").length && !$("#words .training"), "where no number differs, a check or a loss does");
    press("e");
    exercises.clear();
    await go("#1");
}

/* Nonsense gets its place, and changes nothing. */
async function nonsense() {
    await openAt("#2/b3.0");
    const recorded = state.lesson, cases = [["y * dz", 5, "d"], ["y * (dy - sum(y * dy)", 5, "("], ["y $ dy", 3, "$"], ["dA @ A", 4, "@"], ["y dy", 3, "d"], ["sum", 1, "s"]];
    for (const [formula, column, sign] of cases) {
        type(formula);
        expect(!$("#rule-said .error"), `${formula}: an error before the reader stops`);
        await wait(500);
        expect($("#rule-said").textContent.startsWith(`At character ${column}: `), `${formula}: ${said()}`);
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
    expect(said() === "Right.", `the signs of a phone: ${said()}`);
    button("take back").click();
    enter("y * dy\nset 0 9 Q");
    expect(state.lesson === recorded && said(), "a newline begins a setting of the request");
    press("Escape", text());
}

/* All by mouse, and what the box says of itself. */
async function byMouse() {
    await go("#2/b3.0");
    toRule();
    const opener = $("#step .writes");
    expect(opener && opener.getAttribute("aria-expanded") === "false", "a step has no button for its rule");
    opener.click();
    expect(isOpen() && $("#step .writes").getAttribute("aria-expanded") === "true", "the button opens no box");
    const field = getComputedStyle(text()), mirror = getComputedStyle($(".mirror"));
    expect(parseFloat(field.fontSize) >= 16, `the box has type of ${field.fontSize}`);
    expect(field.fontFamily === mirror.fontFamily && field.fontSize === mirror.fontSize && text().clientWidth === $(".mirror").clientWidth, "the marks stand at other places than the text");
    expect(text().labels.length === 1 && text().labels[0].textContent === "dZ =", "the box has no name");
    expect($("#rule-said").getAttribute("role") === "status", "the judgement is not told to screen readers");
    expect(text().value === "A * (dA - sum(A * dA))", `the right rule is not there: ${text().value}`);
    type("");
    const chip = name => all(".chip").find(each => each.firstChild.textContent === name);
    for (const name of ["A", "*", "dA"]) {
        expect(!chip(name).dispatchEvent(new MouseEvent("mousedown", { bubbles: true, cancelable: true })), "a name takes the focus");
        chip(name).click();
    }
    expect(text().value === "A * dA" && document.activeElement === text(), `the names write ${text().value}`);
    $(".language summary").click();
    for (const word of ["sum0(x)", "the product of tables", "dA", "the result"]) expect($(".language").textContent.includes(word), `the language has no ${word}`);
    lookWide();
    $(".language summary").click();
    await wait();
    for (const control of all("#rule-box button")) if (control.getClientRects().length) {
        const { width, height } = control.getBoundingClientRect();
        expect(width >= 24 && height >= 24, `${control.textContent} is ${width} by ${height}`);
    }
    button("plant").click();
    expect(/without the sum/.test(said()), `plant: ${said()}`);
    $("#rule-box .close").click();
    expect(!isOpen() && /without the sum/.test($("#words").textContent) === false && $("#step .tick.wrong"), "the box does not close");
    $("#step .writes").click();
    button("take back").click();
    expect(!hasRules(state.lesson), "take back does nothing");
    await go("#2/f3");
    expect(!$("#step .writes") && !isOpen(), `a step forward has a box: ${where()}`);
    await go("#2/b7.0");
    press("w");
    expect(isOpen() && !step().unit.isFold, "w does not unfold the lines of a step");
    text().focus();
    text().value = "dy * 2 + ".repeat(30) + "dy";
    text().dispatchEvent(new Event("input", { bubbles: true }));
    expect(text().scrollHeight <= text().clientHeight + 2, "a long formula does not fit into its box");
    lookWide();
    press("Escape", text());
}

/* ---- the exercises ------------------------------------------------------------------------------------------------ */

/* All that can be read, or heard. */
const readable = () => ["#step", "#words", "#program", "#rule-box", "#announce", "#panel", "#bar", "#machine", "#state", "#notice"].map(part => $(part)).filter(part => part.getClientRects().length || part.id === "announce")
    .map(part => (part.innerText ?? part.textContent) + [...part.querySelectorAll("*")].map(each => (each.getAttribute("aria-label") || "") + (each.title || "")).join(" ")).join(" ") + text().value + text().placeholder;

/* What must not be read while the rule of the step is hidden. */
function secretsOf() {
    const program = state.lesson.program?.find(each => each.line === step().unit.line), [, right] = /[=←] (.*)$/s.exec($("#step .rule h2").textContent);
    return { right, arrives: nameEl(step().unit.result.gradient).textContent, words: $("#words .text").textContent, formula: Controls.box().places.find(place => `b${place.line}.${place.input}` === step().id)?.formula,
        sources: (program?.backward || []).map(n => sources[n].text.split("\n").reduce((a, b) => (b.trim().length > a.length ? b.trim() : a), "")) };
}

function expectHidden(secret, what) {
    const read = readable();
    if (secret.right.length > 3 && secret.right !== secret.arrives) expect(!read.includes(secret.right), `${what}: the rule ${secret.right} can be read`);
    if (secret.formula.length > 5) expect(!read.includes(secret.formula), `${what}: the formula ${secret.formula} can be read`);
    expect(!read.includes(secret.words), `${what}: the words can be read`);
    for (const line of secret.sources) expect(!read.includes(line), `${what}: the C can be read: ${line}`);
    expect(!$("#terms .fac") && !$(".looks") && !$(".nudged") && !$(".opens") && $("#program").hidden && !$("#words form.question"), `${what}: something tells the rule`);
}

async function writeAll() {
    report.written = 0;
    for (const { number, part = "" } of WALK.lessons) {
        const name = `${number}${part}`;
        await go(`#${name}`);
        for (const group of state.lesson.groups) if (!group.isMoves && !state.lesson.open.has(group.id)) toggleGroup(group);
        const ids = state.lesson.steps.filter(each => each.kind === "backward").map(each => each.id), secrets = new Map(), titles = new Map();
        for (const id of ids) {
            await go(`#${name}/${id}`);
            toRule();
            if ($("#step .rule h2") && !step().unit.isFold) secrets.set(id, secretsOf()), titles.set(id, $("#step .rule h2").textContent);
        }
        for (const group of state.lesson.groups) if (!group.isMoves) toggleGroup(group);
        await go(`#${name}/0`);
        press("End");
        const folded = state.lesson.steps.length;
        press("e");
        expect(step() === stepsToWrite()[0], `lesson ${name}: from the end it begins at ${step().id}`);
        await go(`#${name}/0`);
        press("e");
        expect(state.lesson.steps.length === folded, `lesson ${name}: its lines are not folded again`);
        press("e");
        expect(state.exercise && where().includes("&exercise") && isOpen() && document.activeElement === text(), `lesson ${name}: e begins no exercise`);
        const wanted = stepsToWrite().map(each => each.id);
        for (let n = 0; isOpen() && n < wanted.length; n++) {
            await exercise(`lesson ${name}, ${step().id}`, secrets.get(step().id), titles.get(step().id), n);
            if (button("next rule")) button("next rule").click();
        }
        expect(!stepsToWrite().some(each => unwrittenAt(each)), `lesson ${name}: rules are left`);
        press("Escape", document.activeElement);
        press("End");
        const [, done, of] = /(\d+) of (\d+) rules written/.exec($("#words").textContent) || [];
        expect(Number(of) === wanted.length && Number(done) === wanted.length - 1, `lesson ${name}: the tally is ${done} of ${of}, not ${wanted.length - 1} of ${wanted.length}`);
        expect(!isOpen() || button("end the exercise"), `lesson ${name}: no button ends the exercise`);
        press("e");
        expect(!state.exercise && !where().includes("exercise"), `lesson ${name}: e does not end it`);
        expect(state.lesson.steps.length === folded, `lesson ${name}: its lines stay unfolded`);
    }
}

/* Wrong, wrong with a hint, right; the first one of a lesson is given up. */
async function exercise(what, secret, title, n) {
    const main = () => all("#step .tab.main .c"), recorded = state.lesson;
    expect(secret, `${what}: it was not seen before`);
    if (!secret) return;
    expect(text().value === "" && $("#step .rule h2").textContent.endsWith("= ?") && main().every(cell => cell.textContent === "?"), `${what}: something is shown`);
    expect(all("#step .tab").length === 2 && /= \?\. /.test($("#announce").textContent), `${what}: there are other tables`);
    expectHidden(secret, what);
    for (const cell of main().slice(0, 2)) cell.click();
    expectHidden(secret, `${what}, a cell`);
    settleMotion();
    lookWide();
    if (n === 0) {
        button("show").click();
        expect($("#step .rule h2").textContent === title && text().value.length > 0, `${what}: show does not show it`);
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
    expect(said().startsWith("Wrong") && isOpen() && hasRules(state.lesson), `${what}: 0: ${said()}`);
    expect(!$("#rule-said .hint"), `${what}: a hint after one try`);
    expectHidden({ ...secret, right: "" }, `${what}, wrong`);
    enter("0 + 0");
    expect($("#rule-said .hint"), `${what}: no hint after two tries: ${said()}`);
    expectHidden({ ...secret, right: "" }, `${what}, wrong twice`);
    const place = placeAt(step());
    if (n === 1) {
        press("Escape", text());
        press("ArrowRight");
        expect(!hasRules(state.lesson) && !where().includes("rule="), `${what}: a wrong try stays behind`);
        press("ArrowLeft");
        expectHidden(secret, `${what}, back`);
    }
    enter(inLessonNames(place));
    expect($("#step .rule h2").textContent === title, `${what}: the step is not shown: ${$("#step .rule h2").textContent}, not ${title}`);
    expect(/Right\./.test(said()) && !hasRules(state.lesson) && (state.asked || main().every(cell => cell.textContent !== "?")), `${what}: ${said()}`);
    expect(state.lesson === recorded && (state.asked || $("#words .text").textContent === secret.words), `${what}: the words do not come back`);
    report.written++;
}

/* A page that is opened by a link into an exercise. */
async function opened() {
    expect(state.exercise && $("#step .rule h2").textContent === "dZ = ?" && isOpen() && !$("#step .fac"), `the link shows ${$("#step .rule h2").textContent}`);
    $("#write").click();
    expect(!state.exercise && $("#step .rule h2").textContent.includes("sum(A"), "the button does not end the exercise");
    $("#write").click();
    expect(state.exercise && $("#step .rule h2").textContent === "dZ = ?", "the button begins no exercise");
}

/* Without the library the box and the exercise say why. */
async function refused() {
    await go("#2/b3.0");
    press("w");
    expect(isOpen() && text().disabled && said().includes(WALK.refused), `the box says ${said()}`);
    press("e");
    expect(!state.exercise && $("#notice").textContent.includes(WALK.refused), `the exercise says ${$("#notice").textContent}`);
    expect($("#step .rule h2").textContent.includes("sum(A"), "the step is not there");
    await go("#2/b3.0&exercise");
    expect($("#step .rule h2").textContent.includes("sum(A"), "a link hides a rule that cannot be written");
}

begin(async () => {
    await wait(20);
    const walks = { rightRules, namedMistake, oldAddresses, otherRules, nonsense, byMouse, exercises: writeAll, opened, refused };
    for (const name of WALK.parts) await walks[name]();
});
