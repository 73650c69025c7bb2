/* rulebox.js - the box in which a reader writes the rule of a step: a formula, which the library checks while it is typed
 * and plants when Enter is pressed. It stands above the step, and stays in the page, so that a redrawn step takes neither its
 * text nor the focus. What is planted stands in the address (controls.js). */
"use strict";

/* place: the rule that it is for; id: what it was filled for; timer: of the next check; opened, closed: the step at which the
 * reader did that, as long as it is the one that is shown. */
const ruleBox = { place: null, id: "", timer: 0, opened: "", closed: "" };
const boxParts = {};

const whyNoRules = () => (Controls.isLoading() ? "The library is still loading." : !Controls.isLive() ? Live.refused
    : "This tape was recorded: its rules cannot be written here.");

/* Is the box open at this step? In the exercise mode at each rule that is to be written, and was; else where the reader
 * opened it, or has written a rule; a rule of "break it" leaves the room to the step. */
function isBoxOpen(step) {
    if (step.kind !== "backward" || step.unit.isFold) return false;
    if (isExercise() && isWorthwhile(step, placeAt(step))) return true;
    return ruleBox.opened === nameOfStep(step) || (ruleBox.closed !== nameOfStep(step) && !!plantedAt(step)?.typed);
}

const nameOfStep = ({ id }) => `${state.lesson.name}/${id}`;

/* The button of a step that opens its box. */
function boxButton(step) {
    if (step.kind !== "backward" || (isExercise() && isBoxOpen(step)) || state.compare) return "";
    return el("button", { class: "writes", "aria-expanded": String(isBoxOpen(step)), "aria-controls": "rule-box",
        title: "Write this rule yourself (w)", onclick: () => toggleBox() }, icon("i-write"), el("span", {}, "your rule"));
}

/* The key opens it, and leads into it. */
function toggleBox(byKey = false) {
    const step = stepNow();
    if (step.kind !== "backward") return false;
    if (step.unit.isFold) {
        toggleGroup(step.unit.group);
        return toggleBox(byKey);
    }
    if (isBoxOpen(step) && !isExercise() && !byKey) closeBox();
    else {
        Object.assign(ruleBox, { opened: nameOfStep(step), closed: "" });
        drawAgain();
        focusBox();
    }
    return true;
}

/* The focus returns to the step. */
function closeBox() {
    const step = stepNow();
    if (!isExercise()) {
        Object.assign(ruleBox, { opened: "", closed: nameOfStep(step) });
        drawAgain();
    }
    byId("step").focus({ preventScroll: true });
}

function focusBox() {
    const { text } = boxParts;
    if (byId("rule-box").hidden || text.disabled) return;
    text.focus({ preventScroll: true });
    text.setSelectionRange(0, text.value.length);
    byId("rule-box").scrollIntoView({ block: "nearest" });
}

/* ---- drawing ------------------------------------------------------------------------------------------------------ */

/* Made once, when the page begins. */
function beginBox() {
    Object.assign(boxParts, {
        name: el("label", { id: "rule-name", for: "rule-text" }),
        mirror: el("div", { class: "mirror", "aria-hidden": "true" }),
        text: el("textarea", { id: "rule-text", rows: "1", autocomplete: "off", autocapitalize: "off", autocorrect: "off",
            spellcheck: "false", enterkeyhint: "done", "aria-describedby": "rule-said", oninput: typed, onkeydown: keyInBox }),
        plant: el("button", { class: "plant" }, "plant"),
        back: button("take back", takeBack),
        give: button("show", giveUp),
        next: button("next rule", () => {
            goToUnwritten();
            focusBox();
        }),
        end: button("end the exercise", toggleExercise),
        said: el("div", { id: "rule-said", role: "status" }),
        names: el("div", { class: "names" }),
        help: el("details", { class: "language", ontoggle: () => rebuild() }, el("summary", {}, "the language"), el("div")),
        close: button(icon("wrong"), closeBox, { class: "close", "aria-label": "Close the box (Esc)", title: "Close (Esc)" }),
    });
    const { name, mirror, text, plant, back, give, next, end, said, names, help, close } = boxParts;
    const submit = event => {
        event.preventDefault();
        plantTyped();
    };
    byId("rule-box").append(el("form", { onsubmit: submit }, name, el("div", { class: "field" }, mirror, text),
        el("div", { class: "buttons" }, plant, back, give, next, end)), said, el("div", { class: "with" }, names, help), close);
}

function drawBox(step) {
    for (const what of ["opened", "closed"]) if (ruleBox[what] !== nameOfStep(step)) ruleBox[what] = "";
    const box = byId("rule-box"), isOpen = isBoxOpen(step), wasOpen = !box.hidden;
    box.hidden = !isOpen;
    if (!isOpen) {
        clearTimeout(ruleBox.timer);
        ruleBox.id = boxParts.text.value = ""; /* a rule that is still to be written stands nowhere */
        fill(boxParts.mirror);
        return;
    }
    const place = placeAt(step) || null, key = [nameOfStep(step), isExercise(), !!placeAt(step)].join(" "),
        isNew = ruleBox.id !== key || !wasOpen;
    Object.assign(ruleBox, { place, id: key });
    if (isNew) fillBox(step, place);
    updateBox(step, place);
}

/* The formula that stands in the box first: what is planted, or what was written before; where the rule is no secret, the
 * right one, so that it can be changed. */
function firstFormula(step, place) {
    const planted = plantedAt(step), done = doneIn(state.lesson).done.get(place?.name);
    if (planted) return planted.formula;
    if (isExercise()) return done ? done.formula : "";
    return place ? inLessonNames(place) : "";
}

function fillBox(step, place) {
    const { text, name, names, help, said } = boxParts, { unit, part: { tensor } } = step;
    fill(name, nameEl(tensor.gradient), tensor.parts.length > 1 && [" from ", nameEl(unit.result.symbol)], " =");
    name.title = place ? `build/explain --rule "${place.name}: …"` : "";
    text.value = firstFormula(step, place);
    text.disabled = !place;
    fill(said, !place && whyNoRules());
    fill(names, place && chipsOf(place));
    fill(help.lastChild, place && drawLanguage(place));
    names.hidden = help.hidden = !place;
    mirrorText();
}

/* What is planted, and which buttons there are. */
function updateBox(step, place) {
    const { plant, back, give, next, end, said, close, text } = boxParts, planted = plantedAt(step),
        isOpen = isExercise() && !!place && !!unwrittenAt(step);
    plant.disabled = !place;
    plant.textContent = isExercise() ? "check" : "plant";
    back.hidden = isExercise() || !place || !planted || !Controls.isOwnRule(place);
    give.hidden = !isOpen;
    next.hidden = !isExercise() || isOpen || nextUnwritten() < 0;
    end.hidden = !isExercise() || isOpen || nextUnwritten() >= 0;
    close.hidden = isExercise();
    const verdict = place && verdictOf(step, place, planted);
    if (verdict && !said.querySelector(".error")) fill(said, verdict);
    text.classList.toggle("is-wrong", isWrong(planted));
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

/* The library's right formula of this place, in these names: for y of A it says A. */
function inLessonNames(place) {
    const own = namesAt(place);
    return place.formula.replace(/[A-Za-z_]\w*/g, word => own.find(({ all }) => all.includes(word))?.name || word);
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
function chipsOf(place) {
    const chip = (label, added, words) => el("button", { type: "button", class: "chip", title: words,
        "aria-label": `write ${[added.trim(), words].filter(Boolean).join(", ")}`,
        onmousedown: event => event.preventDefault(), onclick: () => insert(added) }, label);
    const size = ({ t, is, number }) => (is === "number" ? bare(number) : t ? t.shape.join("×") || "1" : "");
    const names = namesAt(place).map(each =>
        chip([nameEl(each.name), el("small", {}, " ", size(each))], each.name, wordsOfName(each)));
    return [names, ["+", "−", "*", "/", "@"].map(each => chip(each, ` ${plainSigns(each)} `, "")),
        ["'", "(", ")"].map(each => chip(each, each, "")), chip("sum( )", "sum(", "")];
}

function drawLanguage(place) {
    const code = text => el("code", {}, text), row = ({ text, says }) =>
        [el("dt", {}, text.split(/ {2}/).map((each, n) => [n ? " " : "", code(each)])), el("dd", {}, says)];
    const names = namesAt(place).flatMap((each, n) => [n ? "; " : "", listed(each.all.map(code)), ` (${wordsOfName(each)})`]);
    return [el("dl", {}, Controls.box().help.map(row)), el("p", {}, "Names here: ", names, ".")];
}

function insert(added) {
    const { text } = boxParts, { selectionStart: from, selectionEnd: to, value } = text;
    const before = value.slice(0, from), isDouble = / $/.test(before) && /^ /.test(added);
    text.value = before + (isDouble ? added.slice(1) : added) + value.slice(to);
    const at = from + added.length - (isDouble ? 1 : 0);
    text.focus({ preventScroll: true });
    text.setSelectionRange(at, at);
    typed();
}

/* ---- typing ------------------------------------------------------------------------------------------------------- */

/* What a phone's keyboard writes for the signs of a keyboard. */
const plainSigns = text => text.replace(/[’‘′ᵀ]/g, "'").replace(/[−–]/g, "-").replace(/[×·]/g, "*").replace(/\s/g, " ");

/* The text once more, under the field, with a mark where the error is; it also makes the field as high as its text. */
function mirrorText(column = 0) {
    const { mirror, text } = boxParts, value = plainSigns(text.value), at = column - 1;
    fill(mirror, column ? [value.slice(0, at), el("mark", {}, value[at] || " "), value.slice(at + 1)] : value, "\u200b");
    if (column) text.setAttribute("aria-invalid", "true");
    else text.removeAttribute("aria-invalid");
}

const PAUSE = 350; /* milliseconds after the last key */

/* A formula is judged when it is planted; an error is said before. */
function typed() {
    mirrorText();
    clearTimeout(ruleBox.timer);
    const { place } = ruleBox, { text, said } = boxParts;
    if (said.querySelector(".error") || !text.value.trim()) fill(said);
    const check = () => sayError(Controls.tryRule(place, plainSigns(text.value)).error);
    if (place && text.value.trim()) ruleBox.timer = setTimeout(check, PAUSE);
}

/* "rule of A, column 5: there is no dz here" */
function sayError(error) {
    const { said, text } = boxParts;
    const [, column, words] = /^rule of .*?, column (\d+): (.*)$/s.exec(error || "") || [], at = Number(column) || 0;
    mirrorText(at);
    if (!error && said.querySelector(".error")) fill(said);
    if (!error) return;
    const where = at > plainSigns(text.value).trimEnd().length ? "At the end: " : `At character ${at}: `;
    fill(said, el("p", { class: "error" }, at ? [el("b", {}, where), transposes(words)] : error.replace(/^rule of [^:]*: /, ""), "."));
}

function keyInBox(event) {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    if (!event.shiftKey) plantTyped();
}

/* ---- planting ----------------------------------------------------------------------------------------------------- */

/* An error leaves all as it is, the focus in the box; after a plant the arrows step. */
function plantTyped() {
    const { place } = ruleBox, { text, said } = boxParts, formula = plainSigns(text.value).trim();
    clearTimeout(ruleBox.timer);
    if (!place) return;
    if (!formula) return fill(said, el("p", { class: "error" }, "Write a formula first."));
    const isTry = isExercise() && !!unwrittenAt(stepNow()), { error, planted } = isTry ? Controls.tryRule(place, formula) : {};
    if (!error) fill(said);
    const refused = error || (isTry ? tryExercise(place, formula, planted) : Controls.plantRule(place, formula));
    if (refused) return sayError(refused.replace(/\.$/, ""));
    mirrorText();
    byId("step").focus({ preventScroll: true });
}

function takeBackRule(step) {
    const place = placeAt(step);
    if (place) Controls.plantRule(place, null);
}

/* The right rule again, in the step and in the box. */
function takeBack() {
    const step = stepNow();
    ruleBox.opened = nameOfStep(step);
    takeBackRule(step);
    fillAgain();
}

function fillAgain() {
    fillBox(stepNow(), ruleBox.place);
    updateBox(stepNow(), ruleBox.place);
    byId("step").focus({ preventScroll: true });
}

/* A right rule shows the step, and the library's own takes its place again; a wrong one stays to be looked at. One that is
 * right for these numbers alone is not right. */
function tryExercise(place, formula, { verdict, why }) {
    const { tries } = doneIn(state.lesson), isRight = verdict === "right" && !why;
    if (!isRight) tries.set(place.name, (tries.get(place.name) || 0) + 1);
    if (!isRight) return Controls.plantRule(place, formula);
    markDone(place, formula, false);
    if (plantedAt(stepNow())) Controls.plantRule(place, null);
    else drawAgain();
    return "";
}

/* Shows the rule that was not found. */
function giveUp() {
    const { place } = ruleBox, step = stepNow();
    markDone(place, inLessonNames(place), true);
    if (plantedAt(step)) Controls.plantRule(place, null);
    fill(boxParts.said);
    drawAgain();
    fillAgain();
}

/* ---- the judgement ------------------------------------------------------------------------------------------------ */

const HINT = "Hint: take one number of the table that you look for. Which numbers of the result change with it, and by how " +
    "much? Its gradient is the sum of these, each times what arrives there.";

const verdictWord = (name, text) => el("b", { class: name }, icon(name), " ", text);

/* What is said of the rule of this step; null if there is nothing to say. */
function verdictOf(step, place, planted) {
    const { done, tries } = doneIn(state.lesson), found = done.get(place.name);
    if (isExercise() && found && !planted) return el("p", {}, found.isShown ? "Shown: this is one way to write it."
        : [verdictWord("right", "Right. "), tallyOfRules()],
    place.exercise && [" The same in C: ", el("code", {}, `examples/exercises/students/${place.exercise}.c`)]);
    if (!planted) return null;
    if (!isWrong(planted)) return el("p", {}, transposes(planted.why) || verdictWord("right", "Right."));
    const isHinted = isExercise() && (tries.get(place.name) || 0) >= 2;
    return [el("p", {}, verdictWord("wrong", "Wrong"), ". ",
        planted.why && [transposes(planted.why), " "], worstWords(plantedPicture(step))),
    isHinted && el("p", { class: "hint" }, transposes(planted.question) || HINT)];
}

/* Beside the tables of a wrong rule: its question, and how far training gets with it. */
function drawWordsOfWrong(planted) {
    if (!isSeenHere(stepNow())) return !isExercise() && el("p", { class: "text" }, "Your rule is wrong, though no number differs here.");
    const menu = menuRuleOf(state.lesson, planted), training = drawTraining();
    if (isExercise()) return training;
    return [el("p", { class: "text" }, planted.typed && !menu ? "Your rule is wrong here" : "This rule is wrong", menu && [": ", menu.title],
        ". All gradients that come from it are wrong, too."),
    planted.question && el("p", { class: "text asks-back" }, el("b", {}, "? "), transposes(planted.question)), training];
}
