/* door.js - the title of a step, which is the box for its rule: a row between the tape and the step, at the same place at every
 * step. A step forward has its rule there. At a step back it is a field: the library judges what is written when Enter is
 * pressed, and computes with it. Below it is one line of words, in whose place names and signs stand while nothing is to be said.
 * The field stays in the page, so that a redrawn step takes neither its text nor the focus. What is planted stands in the
 * address (controls.js). */
"use strict";

/* place, line: of a step or a card, which the field is for; judge: what judges it on the first screen; filled: what it was filled for; timer: of the next check; tried: a lesson and a place -> the formulas that were judged there. */
const door = { place: null, line: null, judge: null, filled: "", timer: 0, tried: new Map() };
const doorParts = {};

const whyNoRules = () => (Controls.isLoading() ? "The library is still loading." : !Controls.isLive() ? Live.refused
    : "This tape was recorded: its rules cannot be written here.");

const keyOfTried = ({ name }) => `${state.lesson.name} ${name}`;
const triedAt = place => (place && door.tried.get(keyOfTried(place))) || [];

/* The place of a step's rule, as the library names it; undefined if the step has none. */
const placeAt = step => (step.kind === "backward" && !step.unit.isFold && Controls.canWriteRules()
    ? Controls.box().places.find(({ line, input }) => line === step.part.line.line && input === step.part.k) : undefined);

/* ---- rules that are to be written --------------------------------------------------------------------------------- */

/* What has been done at a place, {formula, isShown}; undefined: nothing yet. It outlives other numbers of the lesson. */
function doneAtPlace(place) {
    const [, how, formula] = /^(\w+) (.*)$/s.exec(place && keptIn(state.lesson).get("rule " + place.name)) || [];
    return how && { formula, isShown: how === "shown" };
}

/* Is the rule worth writing? Not where numbers only move, and no formula says more than dy. */
const isWorthwhile = (step, place) => !!place && place.formula !== "" && !(step.unit.moves && place.formula === "dy");
const stepsToWrite = () => state.lesson.steps.filter(step => isWorthwhile(step, placeAt(step)));
const doneAt = step => doneAtPlace(placeAt(step));

/* A right rule that came with the address. */
const isRightAt = step => plantedAt(step)?.verdict === "right" && !plantedAt(step).why;

const isUnwritten = step => isWorthwhile(step, placeAt(step)) && !doneAt(step) && !isRightAt(step);

/* While the library loads nobody knows which rules there are. On paper they are left out, too (paper.js). */
const isRuleHidden = step => state.hide && !state.printing && step.kind === "backward" && (Controls.isLoading() || isUnwritten(step));

/* The rule is still to be found where the step begins with what moves. */
const isToBeFound = step => isRuleHidden(step) || (isNudging() && isOfWeights(step));

const markDone = (step, formula, isShown) => keep(state.lesson, [["rule " + placeAt(step).name, `${isShown ? "shown" : "written"} ${formula}`]]);

/* "3 of 7 rules written. " */
function tallyOfRules() {
    const isBegun = Controls.canWriteRules() && (state.hide || keptAt(state.lesson, "rule ").length > 0);
    const all = isBegun ? stepsToWrite() : [], written = all.filter(step => doneAt(step)?.isShown === false);
    return all.length ? `${written.length} of ${all.length} rules written. ` : "";
}

/* A wrong try does not stay behind where answers are hidden: the next step has right gradients. */
function leaveTry() {
    if (state.hide && plantedAt(stepNow())?.typed) Controls.plantRule(placeAt(stepNow()), null);
}

/* Shows the rule that was not found. */
function giveUp() {
    const step = stepNow();
    if (Controls.isLoading()) return false;
    const place = placeAt(step);
    markDone(step, place.shown, true);
    keepShown([...step.part.dx.keys()].map(picture.main.key));
    if (plantedAt(step)) Controls.plantRule(place, null);
    else drawAgain();
    return true;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

/* Made once; a page that a browser saved has one already. */
function beginDoor() {
    const parts = Object.assign(doorParts, {
        row: byId("door"),
        title: el("h2", { id: "rule-title" }),
        name: el("label", { for: "rule-text" }),
        mirror: el("div", { class: "mirror", "aria-hidden": "true" }),
        text: el("textarea", { id: "rule-text", rows: "1", autocomplete: "off", autocapitalize: "off", autocorrect: "off",
            spellcheck: "false", enterkeyhint: "done", "aria-describedby": "rule-said", oninput: typed, onkeydown: keyInBox }),
        judge: el("button", { class: "judge" }, "judge", el("kbd", { "aria-hidden": "true" }, "⏎")),
        mistakes: el("select", { id: "mistakes", "aria-label": "known mistakes", title: "Plant a known mistake, and see what it does",
            onchange: event => plantMistake(event.target.value) }),
        verdict: el("span", { id: "verdict" }),
        said: el("p", { id: "rule-said", role: "status" }),
        names: el("div", { class: "names" }),
    });
    const submit = event => {
        event.preventDefault();
        judgeTyped();
    };
    fill(byId("door"), el("form", { id: "rule-form", onsubmit: submit }, parts.title, parts.name, el("div", { class: "field" }, parts.mirror,
        parts.text), parts.judge, parts.mistakes, parts.verdict), el("div", { class: "under" }, parts.said, parts.names));
}

/* A row that is no box. */
function drawPlainRow(words) {
    Object.assign(door, { place: null, line: null, judge: null });
    byId("door").classList.remove("boxed");
    fillField("", "");
    for (const name of ["verdict", "names", "mistakes"]) fill(doorParts[name]);
    fill(doorParts.title, words);
    sayWords({ words: wordsOfElsewhere(stepNow()) });
}

/* The row of this step; rule: as the step's picture has it. */
function drawDoor(step, rule) {
    const place = placeAt(step), sum = sumAt(step), isBox = !!place || !!sum, isHidden = isToBeFound(step);
    const { title, text, names, judge, mistakes, verdict } = doorParts, { part } = step;
    drawField(isBox && [nameEl(part.tensor.gradient), !sum && part.tensor.parts.length > 1 && [" from ", nameEl(step.unit.result.symbol)]], { place: place || null, line: null });
    fill(title, rule);
    text.readOnly = judge.hidden = !!sum;
    const first = !isBox ? "" : sum ? sum.text : firstFormula(step, place, isHidden);
    fillNew([state.lesson.name, step.id, first].join(" "), first);
    fill(names, place && chipsOf(place));
    const isError = !!doorParts.said.querySelector(".error");
    fill(mistakes, isBox && !isHidden && optionsOf(step, place, sum, first));
    mistakes.hidden = mistakes.options.length < 2;
    if (isError) return;
    fill(verdict, tick(step));
    text.classList.toggle("is-wrong", !!verdict.querySelector(".wrong"));
    sayWords(wordsOfDoor(step, place));
}

/* The field, with this name before it; none without a name. */
function drawField(name, of) {
    const { text, judge, mistakes } = doorParts;
    Object.assign(door, { judge: null, ...of });
    byId("door").classList.toggle("boxed", !!name);
    fill(doorParts.name, name, " =");
    fill(doorParts.names, of.line && signChips());
    text.placeholder = "write the rule" + (of.judge || isNarrow() ? "" : "; Enter judges");
    text.readOnly = judge.hidden = false;
    mistakes.hidden = true;
    fill(mistakes);
}

function fillNew(filled, first) {
    if (door.filled !== filled) fillField(filled, first);
}

function fillField(filled, first) {
    const { text, said } = doorParts;
    clearTimeout(door.timer);
    door.filled = filled;
    text.value = first;
    fill(said);
    mirrorText();
}

/* The formula that stands in the field first: what is planted, what was written before, or the library's own. */
function firstFormula(step, place, isHidden) {
    const planted = plantedAt(step), found = state.hide && doneAt(step);
    if (planted) return planted.formula;
    return isHidden ? "" : found ? found.formula : place.shown;
}

/* At an addition the rule is +=: {text, last, isPlanted}. */
function sumAt({ kind, part }) {
    if (kind !== "add" || !Controls.canWriteRules()) return null;
    const { parts } = part.tensor, words = parts.slice(0, parts.indexOf(part) + 1).map(each => `from ${plain(each.line.result.symbol)}`);
    const isPlanted = state.lesson.rule === "assign", [last] = words.slice(-1);
    return { isPlanted, last, text: isPlanted ? last : words.join(" + ") };
}

/* The known mistakes of a place, as formulas in the names of the lesson; above them the way back from one. */
function optionsOf(step, place, sum, first) {
    const isPlanted = sum ? sum.isPlanted : !!plantedAt(step), list = sum ? [sum.last]
        : place.mistakes.map(({ formula }) => formula);
    if (!list.length && !isPlanted) return [];
    const known = plantedAt(step)?.mistake && place.mistakes.find(({ id }) => id === plantedAt(step).mistake)?.formula,
        at = !isPlanted ? "" : list.find(each => dense(each) === dense(first)) || known;
    return [new Option(isPlanted ? "take back" : "known mistakes", "", false, !isPlanted), isPlanted && !at && new Option("yours", first, false, true),
        ...list.map(each => new Option(each, each, false, each === at))];
}

const dense = text => text.replace(/\s/g, "");

function plantMistake(formula) {
    const { place } = door;
    keepLook();
    door.filled = "";
    if (place) Controls.plantRule(place, formula || null);
    else Controls.change({ rule: formula && "assign" });
    if (formula) toLastLook();
}

/* ---- the line of words -------------------------------------------------------------------------------------------- */

const HINT = "Hint: take one number of the table that you look for. Which numbers of the result change with it, and by how " +
    "much? Its gradient is the sum of these, each times what arrives there.";

/* Of a rule whose mark says that it is right. */
const HOLDS = "It holds for other numbers, too.";
const goOn = () => el("span", { class: "go-on" }, "Go on: ", el("b", {}, "→"), ". ");

/* That the language has a sum: where a rule needs one. */
const hintOfSum = place => place && /\bsum\(/.test(place.formula) && [el("code", {}, "sum( )"), " adds up a row."];

/* loud: it is not to give its place to names. */
function sayWords({ loud, words }) {
    fill(doorParts.said, words);
    doorParts.said.classList.toggle("loud", !!loud);
}

function wordsOfDoor(step, place) {
    const planted = plantedAt(step), found = state.hide && doneAtPlace(place);
    if (isWrong(planted)) return { loud: true, words: [el("b", {}, ruleWords(planted.why || "This is not the gradient.")), " ", alsoWrong(step),
        state.hide && triedAt(place).length >= 2 && el("i", { class: "hint" }, ruleWords(planted.question || HINT))] };
    if (planted) return { loud: true, words: [ruleWords(planted.why || HOLDS), " ", tallyOfRules(), !planted.why && goOn()] };
    if (found) return { loud: true, words: [found.isShown ? "Shown: this is one way to write it. " : HOLDS + " ", tallyOfRules(), !found.isShown && goOn(),
        !found.isShown && place.exercise && ["The same in C: ", el("code", {}, `examples/exercises/students/${place.exercise}.c`)]] };
    const elsewhere = wordsOfElsewhere(step);
    if (isRuleHidden(step)) return { words: Controls.isLoading() ? whyNoRules() : [elsewhere, elsewhere && " ", "Hidden until it is written; “show it” gives up. ", tallyOfRules(), hintOfSum(place)] };
    return { words: elsewhere || (step.check && step.check !== "right" || step.passes ? step.checked + "." : step.kind !== "backward" ? ""
        : isToBeFound(step) ? ["Write it before it is shown", el("span", { class: "by-key" }, ", or go on: ", el("b", {}, "→")), ". ", hintOfSum(place)]
        : place ? ["The library’s rule. Change it", el("span", { class: "by-key" }, ", and Enter judges yours"), doorParts.mistakes.hidden ? "." : "; or take a known mistake."]
        : step.unit.isFold || Controls.canWriteRules() ? "" : whyNoRules()) };
}

/* "dS, dQ are wrong, too.": what wrong numbers of this step have reached. */
function alsoWrong({ part: { tensor } }) {
    const spoiled = spoiledBy().filter(t => t !== tensor);
    return spoiled.length > 0 && ["So ", areWrong(spoiled), ", too. "];
}

/* The tensors whose gradients wrong numbers have reached, in the order of the way back. */
const spoiledBy = () => state.lesson.tape.tensors.filter(t => t.name && t.grad && t.gradStep < Infinity && !t.unit?.moves && Controls.changedByRule(t))
    .sort((a, b) => a.gradStep - b.gradStep);
const linkToGradient = t => el("a", { href: addressOf(state.lesson.steps[t.gradStep], null) }, nameEl(t.gradient));
const areWrong = spoiled => [listed(spoiled.map(linkToGradient)), spoiled.length > 1 ? " are wrong" : " is wrong"];

/* The page shows another state than the recorded one: a rule at another step, other numbers. */
function wordsOfElsewhere(step) {
    const { steps, planted = [] } = state.lesson, red = steps.find(each => each.check === "wrong" && each !== step);
    const spoiled = spoiledBy(), own = planted.find(each => each.typed && isWrong(each)), check = step.check === "wrong" && step.checked.replace(/ \(largest.*/, "");
    if (isBroken(state.lesson) && (red || own)) return [!check && red && [el("a", { class: "broken", href: addressOf(red, null) },
        nameEl(resultOf(red).gradient), " has a wrong rule"), ": "], check && [check, ": "],
    spoiled.length ? [areWrong(spoiled), "."] : "no number differs."];
    if (isBroken(state.lesson)) return check ? check + "." : "A rule is wrong, though no number differs here.";
    if (!Controls.isChanged() || Controls.isLoading() || (Controls.onlySgd() && isSgd(step)) || Controls.onlyRules()) return "";
    return `${Controls.onlySgd() ? `After ${countOfSteps(stepsTaken(state.lesson))} of SGD` : "Changed"}: the loss is ${bare(lossOf(state.lesson))}, it was ${bare(lossOf(Controls.recorded()))}.`;
}

/* ---- names and the language --------------------------------------------------------------------------------------- */

/* A name of each table and number of the place's line, the lesson's own if there is one: {t, is, number, name, all}. */
function namesAt(place) {
    const { result, inputs } = state.lesson.tape.lines.find(({ line }) => line === place.line), groups = new Map();
    for (const each of place.names) {
        const t = { dy: result, y: result, input: inputs[each.input] }[each.is], meaning = [each.is, each.input, each.number].join(" ");
        if (t && t.type === "int64") continue;
        if (!groups.has(meaning)) groups.set(meaning, { ...each, t, all: [] });
        groups.get(meaning).all.push(each.name);
    }
    return [...groups.values()].map(group => ({ ...group, name: group.all.find(name => !name.includes("(")) || group.all[0] }));
}

/* A formula to be read, not typed: A × dA, in the symbols and signs of the page. */
function typesetFormula(place, formula) {
    const own = namesAt(place);
    const symbol = ({ is, t }) => nameEl(is === "dy" ? t.gradient : t.symbol);
    return formula.replace(/\*/g, "×").replace(/-/g, "−").split(/([A-Za-z_]\w*)/).map(word => {
        const found = own.find(({ all }) => all.includes(word));
        return found?.t ? symbol(found) : word;
    });
}

/* Not where a table moves only: dK = dKᵀ, whose ᵀ belongs to the name, would say the opposite of what it means. */
const canTypeset = ({ name }) => !name.includes("'") && !name.includes("transposed");

/* "arrives, 2 × 3" */
function wordsOfName({ t, is, number }) {
    const words = { dy: "arrives", y: "the result", input: "an input", table: "1 where kept, else 0" }[is] || bare(number);
    return words + (t ? ", " + (t.shape.join(" × ") || "one number") : "");
}

/* Buttons that write a name or a sign: on a phone they are quicker than its keys. */
const chip = (label, added, words) => el("button", { type: "button", class: "chip", title: words, tabindex: "-1",
    "aria-label": `write ${[added.trim(), words].filter(Boolean).join(", ")}`,
    onmousedown: event => event.preventDefault(), onclick: () => insert(added) }, label);

const signChips = () => [["+", "−", "*", "/", "@"].map(each => chip(each, ` ${plainSigns(each)} `, "")),
    ["'", "(", ")"].map(each => chip(each, each, "")), chip("sum( )", "sum(", "")];

function chipsOf(place) {
    const size = ({ t, is, number }) => (is === "number" ? bare(number) : t ? t.shape.join("×") || "1" : "");
    return [namesAt(place).map(each => chip([nameEl(each.name), el("small", {}, " ", size(each))], each.name, wordsOfName(each))), signChips()];
}

/* In the help: the language, and the names of this step. */
function drawLanguage() {
    const code = text => el("code", {}, text), row = ({ text, says }) =>
        [el("dt", {}, text.split(/ {2}/).map((each, n) => [n ? " " : "", code(each)])), el("dd", {}, says)];
    const names = door.place && namesAt(door.place).flatMap((each, n) => [n ? "; " : "", listed(each.all.map(code)), ` (${wordsOfName(each)})`]);
    return Controls.canWriteRules() && [el("dl", {}, Controls.box().help.map(row)), names && el("p", {}, "Names at this step: ", names, ".")];
}

function insert(added) {
    const { text } = doorParts, { selectionStart: from, selectionEnd: to, value } = text;
    const before = value.slice(0, from), isDouble = / $/.test(before) && /^ /.test(added);
    text.value = before + (isDouble ? added.slice(1) : added) + value.slice(to);
    const at = from + added.length - (isDouble ? 1 : 0);
    text.focus({ preventScroll: true });
    text.setSelectionRange(at, at);
    typed();
}

/* ---- typing ------------------------------------------------------------------------------------------------------- */

function focusDoor() {
    const { text } = doorParts;
    if (!door.place && !door.line) return false;
    text.focus({ preventScroll: true });
    text.setSelectionRange(0, text.value.length);
    byId("door").scrollIntoView({ block: "nearest" });
    return true;
}

/* The key leads into the field: of lines that are folded into one, into that of the first one. */
function writeHere() {
    const step = stepNow();
    if (step.kind === "backward" && step.unit.isFold) toggleGroup(step.unit.group);
    return focusDoor();
}

/* Esc leaves it; the arrows step again. */
function leaveDoor() {
    byId("step").focus({ preventScroll: true });
}

/* The right arrow at the end of a rule that was judged right goes on to the next step, and leaves the field. */
function leavesRight({ key, target, repeat, shiftKey }) {
    const { text, said } = doorParts, isDone = target === text && key === "ArrowRight" && !repeat && !shiftKey && !!said.querySelector(".go-on");
    const leaves = isDone && text.selectionStart === text.value.length;
    if (leaves) leaveDoor();
    return leaves;
}

/* What a phone's keyboard writes for the signs of a keyboard. */
const plainSigns = text => text.replace(/[’‘′ᵀ]/g, "'").replace(/[−–]/g, "-").replace(/[×·]/g, "*").replace(/\s/g, " ");

/* The text once more, under the field, with a mark where the error is; it also makes the field as high as its text. */
function mirrorText(column = 0) {
    const { mirror, text } = doorParts, value = plainSigns(text.value), at = column - 1;
    fill(mirror, column ? [value.slice(0, at), el("mark", {}, value[at] || " "), value.slice(at + 1)] : value, "\u200b");
    if (column) text.setAttribute("aria-invalid", "true");
    else text.removeAttribute("aria-invalid");
}

const PAUSE = 350; /* milliseconds after the last key */

/* A formula is judged when Enter is pressed; an error is said before. What was judged is said no longer of another text. */
function typed() {
    const { place, line } = door, { text, verdict } = doorParts, formula = plainSigns(text.value);
    if (line) drafts.set(line.key, text.value);
    mirrorText();
    clearTimeout(door.timer);
    sayWords({});
    text.classList.remove("is-wrong");
    fill(verdict);
    if (place && formula.trim()) door.timer = setTimeout(() => sayError(Controls.tryRule(place, formula).error), PAUSE);
}

/* "rule of A, column 5: there is no dz here" */
function sayError(error) {
    const { text, verdict } = doorParts;
    const [, column, words] = /^rule of .*?, column (\d+): (.*)$/s.exec(error || "") || [], at = Number(column) || 0;
    mirrorText(at);
    if (!error) return;
    const where = at > plainSigns(text.value).trimEnd().length ? "At the end: " : `At character ${at}: `;
    fill(verdict, refusedWord(error));
    sayWords({ loud: true, words: el("span", { class: "error" }, at ? [el("b", {}, where), ruleWords(words)] : error.replace(/^rule of [^:]*: /, ""), ".") });
}

/* A formula whose sizes do not fit was read. */
const refusedWord = words => verdictWord("unknown", / needs (equal|a matrix|matrices)|gradient must be/.test(words) ? "sizes" : "not read");

const verdictWord = (name, text, title) => el("span", { class: `tick ${name}`, title }, icon(name), ` ${text}`);

/* Up and down lead through what was tried at this step. */
function keyInBox(event) {
    const { text } = doorParts, tried = triedAt(door.place), at = tried.indexOf(text.value);
    if (/^Arrow(Up|Down)$/.test(event.key) && tried.length && (!text.value || at >= 0)) {
        const next = event.key === "ArrowUp" ? (at < 0 ? tried.length - 1 : Math.max(0, at - 1)) : at < 0 ? tried.length : at + 1;
        text.value = tried[next] || "";
        typed();
        return event.preventDefault();
    }
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    if (!event.shiftKey) judgeTyped();
}

/* ---- judging ------------------------------------------------------------------------------------------------------ */

/* A formula that cannot be read leaves all as it is. The focus stays in the field. */
function judgeTyped() {
    const { place } = door, { text } = doorParts, formula = plainSigns(text.value).trim(), step = stepNow();
    clearTimeout(door.timer);
    if (door.line) return judgeLine(step, door.line, formula);
    if (!place) return;
    if (door.judge && formula) return door.judge(formula);
    if (!formula) return plantedAt(step) ? plantMistake("") : sayError("Write a formula first");
    const isTry = isRuleHidden(step), { error, planted } = isTry ? Controls.tryRule(place, formula) : {};
    if (!triedAt(place).includes(formula)) door.tried.set(keyOfTried(place), [...triedAt(place), formula]);
    fill(doorParts.said);
    keepLook();
    const refused = error || (isTry ? tryHidden(step, formula, planted) : Controls.plantRule(place, formula));
    if (refused) return sayError(refused.replace(/\.$/, ""));
    mirrorText();
    toLastLook();
}

/* Its numbers stand in the tables of the rule. */
function toLastLook() {
    if (isNudging() && plantedAt(stepNow())) setLook(LOOKS.length);
}

/* A step has fewer looks while a rule is planted there: the rule stays the one that is shown. */
function keepLook() {
    if (!isNudging()) state.look = Math.max(state.look, LOOKS.length);
}

/* A right rule shows the step, and the library's own takes its place again; a wrong one stays to be looked at. One that is
 * right for these numbers alone is not right. */
function tryHidden(step, formula, { verdict, why }) {
    const place = placeAt(step), isRight = verdict === "right" && !why;
    if (!isRight) return Controls.plantRule(place, formula);
    markDone(step, formula, false);
    if (plantedAt(step)) Controls.plantRule(place, null);
    else drawAgain();
    return "";
}

/* ---- the check of a rule ------------------------------------------------------------------------------------------ */

/* At the end of the row: quiet where the rule is right, loud where it is wrong. What was written is judged with other numbers,
 * too: its verdict is not only that of the difference quotients. */
function tick(step) {
    const { check, checked, passes } = step, planted = plantedAt(step);
    if (isWrong(planted)) return verdictWord("wrong", "wrong", checked);
    if (planted) return planted.why ? verdictWord("unknown", "by chance", checked) : verdictWord("right", "right", checked);
    if (isToBeFound(step) || !check) return "";
    if (state.hide && doneAt(step)) return verdictWord("right", doneAt(step).isShown ? "shown" : "right", checked);
    if (passes) return el("span", { class: "tick after", title: checked }, "from a wrong rule");
    return verdictWord(check === "right" ? "right" : check === "wrong" ? "wrong" : "unknown",
        check === "right" ? "checked" : check === "wrong" ? "wrong" : "cannot be checked", checked);
}

/* ---- beside the tables -------------------------------------------------------------------------------------------- */

/* What is to be written, as a sentence without its end. */
function askForRule({ unit, part }) {
    const forward = pictureOf(state.lesson.steps.find(step => step.kind === "forward" && step.unit === unit));
    return ["Forward, this line was ", el("span", { class: "was" }, forward.rule), ". ", nameEl(unit.result.gradient),
        " arrives. Write the rule that makes ", nameEl(part.tensor.gradient), " of it"];
}

function drawWordsOfHidden(box, step) {
    const planted = plantedAt(step);
    byId("program").hidden = true;
    byId("below").classList.remove("asks");
    if (Controls.isLoading()) return fill(box, el("p", { class: "text" }, whyNoRules()));
    fill(box, el("p", { class: "text" }, askForRule(step), ", in the box above, or type a number of it."),
        isWrong(planted) ? drawWordsOfWrong(step, planted) : button("show it", giveUp, { class: "try" }), drawEnd());
}

/* Of a wrong rule: which mistake it is, what differs, its question, and how far training gets with it. */
function drawWordsOfWrong(step, planted) {
    if (!isSeenHere(step)) return el("p", { class: "text" }, "Your rule is wrong, though no number differs here.");
    const isHidden = isRuleHidden(step);
    return [el("p", { class: "mistake" }, planted.mistake ? ["A known mistake: ", ruleWords(planted.computes)] : "Wrong"),
        el("p", { class: "text" }, worstWords(plantedPicture(step))),
        !isHidden && planted.question && el("p", { class: "text asks-back" }, el("b", {}, "? "), ruleWords(planted.question)),
        isHidden && button("show it", giveUp, { class: "try" }), drawTraining()];
}

/* At the end of a lesson: the exercise in C. */
const drawToExercise = ({ exercise }) => exercise && el("p", { class: "to-exercise" }, "Write it yourself, in C: ",
    el("code", {}, `examples/exercises/students/${exercise}.c`), ", marked by ", el("code", {}, "make exercises"), ".");
