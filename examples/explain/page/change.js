/* change.js - the panels that change a lesson: its settings, and the wrong rules of backward. */
"use strict";

const settingWords = { causal: "causal mask", "no-scale": "scale", "no-mask": "mask",
    lengths: "padding at the end, told by lengths" };
const hasField = /^(seed|words|no-scale|no-mask|causal|lengths|heads|dropout)$/; /* what the texts speak of; the others stand in an address */
const isInverted = key => key.startsWith("no-"); /* "no-scale" is a box that is checked where there is a scale */
let inputs = new Map(); /* key of a setting -> its control, while its panel is open */

/* ---- change ------------------------------------------------------------------------------------------------------- */

function drawSetting({ key, kind, least, most }) {
    const isSwitch = kind === "switch", isText = kind === "text" || kind === "words";
    const type = isSwitch ? "checkbox" : isText ? "text" : "number";
    const limits = isSwitch || isText ? {} : { min: String(least), max: String(most), step: kind === "number" ? "any" : "1" };
    const input = el("input", { type, id: "set-" + key, disabled: !Controls.isLive(), autocomplete: "off", ...limits });
    const set = () => tellPanel(Controls.change({ [key]: isSwitch
        ? (input.checked !== isInverted(key) ? "1" : "0") : input.value.trim() }));
    input.addEventListener("change", set);
    inputs.set(key, input);
    return el("label", { class: isText ? "wide" : "" }, isSwitch && input, settingWords[key] || key,
        !isSwitch && input, limits.max && key !== "seed" && el("small", {}));
}

function drawChange() {
    const settings = Controls.settings().filter(({ key }) => hasField.test(key));
    return [el("h2", {}, "Change the example"),
        settings.length === 0 && el("p", {}, "This tape was recorded: it has no settings."),
        el("div", { class: "fields" }, settings.map(drawSetting)),
        el("div", { class: "buttons" }, button("start again", () => tellPanel(Controls.startAgain()), { id: "again" })),
        el("p", { id: "changed", role: "status" })];
}

/* Shows the values in use. */
function updatePanel() {
    updateValues();
    for (const [key, input] of inputs) {
        const { least, most } = state.lesson.settings?.find(each => each.key === key) || {}; /* others stay as they are */
        if (input.type === "number" && most !== undefined) {
            input.max = most;
            if (key !== "seed") input.nextElementSibling.textContent = `${least} to ${most}`;
        }
        if (/^(causal|lengths)$/.test(key) && Controls.isLive())
            input.disabled = inputs.has("no-mask") && Controls.valueNow("no-mask") === "1";
    }
    if (byId("again")) byId("again").disabled = !Controls.isChanged();
    if (byId("changed")) tellPanel("");
    if (byId("panel").dataset.by === "break") fill(byId("panel"), closer(), drawBreak());
}

/* The sentence with which the library refused a change, or what the last change did. */
function tellPanel(sentence) {
    const box = byId("changed");
    if (!box) return sentence;
    box.className = sentence ? "refused" : "";
    const loss = lesson => bare(lossOf(lesson));
    box.textContent = sentence || (Controls.isLoading() ? "" : !Controls.isLive() ? Live.refused : Controls.isChanged()
        ? `The C library in this page computed these numbers, in ${Controls.time().toFixed(0)} ms. The loss is ${loss(state.lesson)}; it was ` +
            `${loss(Controls.recorded())} before your changes. The address is a link to this example.`
        : "The same C library, in this page, computes all numbers anew. To type another number, choose a cell of what was given.");
    if (sentence) updateValues();
    return sentence;
}

/* Also after a refusal the controls show the values in use. */
function updateValues() {
    for (const [key, input] of inputs) {
        const value = Controls.valueNow(key);
        if (input.type === "checkbox") input.checked = (value === "1") !== isInverted(key);
        else if (input.value !== value) input.value = value;
    }
}

/* ---- break it ----------------------------------------------------------------------------------------------------- */

/* A rule of the menu is planted as formulas, "A: y * dy", as if the reader had written them; "assign" is none. */
const keyOfRule = text => "rule:" + text.slice(0, text.indexOf(":"));
const formulaOfRule = text => text.slice(text.indexOf(":") + 1).trim();
const isTyped = text => (state.lesson.planted || []).some(each => each.typed && dense(each.rule) === dense(text));
const isPlanted = ({ key, formulas = [] }) => state.lesson.rule === key || (formulas.length > 0 && formulas.every(isTyped));

function plantMenuRule(chosen) {
    const { rules = [] } = state.lesson, isOn = isPlanted(chosen), { key, formulas = [] } = chosen;
    const before = rules.filter(isPlanted).flatMap(each => each.formulas || []), wanted = isOn ? [] : formulas;
    return Controls.change({ ...Object.fromEntries(before.map(text => [keyOfRule(text), null])),
        rule: isOn || formulas.length ? "" : key,
        ...Object.fromEntries(wanted.map(text => [keyOfRule(text), formulaOfRule(text)])) });
}

/* A rule that is planted shows itself at its step: with its red check, the picture of the tape, and how far training gets. */
function showPlanted(lesson) {
    const n = lesson.steps.findIndex(step => step.check === "wrong");
    if (n < 0) return closePanel();
    goTo(n);
    state.look = firstLook(); /* the step may have stood there, at its nudge */
    Object.assign(ruleBox, { opened: "", closed: nameOfStep(stepNow()) });
    closePanel();
    byId("step").focus({ preventScroll: true });
}

function drawBreak() {
    const { rules = [] } = state.lesson, choose = rule => {
        const said = plantMenuRule(rule);
        if (!said && isBroken(state.lesson)) return showPlanted(state.lesson);
        if (said) tellPanel(said);
        drawAgain();
        byId("panel").querySelector(`[data-rule="${rule.key}"]`)?.focus();
    };
    const card = rule => el("button",
        { class: "rulebox", "data-rule": rule.key, "aria-pressed": String(isPlanted(rule)), disabled: !Controls.isLive(),
        onclick: () => choose(rule) }, el("b", {}, rule.title), wordsOfMenuRule(rule));
    const putBack = () => {
        tellPanel(Controls.takeBackRules());
        drawAgain();
    };
    return [el("div", { class: "top" }, el("h2", {}, "Break a rule of backward"),
        hasRules(state.lesson) && button("put the right rule back", putBack)),
        rules.length === 0 && el("p", {}, "No line of this tape has a rule that can be broken here."),
        el("div", { class: "rules" }, rules.map(card)), Controls.isLive() &&
        el("p", {}, "To write one of your own, press ", el("b", {}, "your rule"), " at a step of backward, or w."),
        el("p", { id: "changed", role: "status" }, Controls.isLive() || Controls.isLoading() ? "" : Live.refused)];
}

/* "dZ = A × dA", in place of the right rule, in the names of the lesson. Rules that only move numbers have no other names than
 * the op's: for them, and without the library, it says what dy is. */
function wordsOfMenuRule({ formulas = [], wrong, right }) {
    const { places } = Controls.canWriteRules() ? Controls.box() : { places: [] }, code = words => el("code", {}, words);
    const found = formulas.map(text => places.find(({ name }) => `rule:${name}` === keyOfRule(text)));
    const [place] = found, rest = el("small", {}, "in place of ", code(typeset(right)));
    if (!place || !found.every(Boolean)) return [(formulas.length ? formulas : [typeset(wrong)]).map(code), rest];
    const lineOf = each => state.lesson.tape.lines.find(({ line }) => line === each.line);
    const gradient = each => nameEl(lineOf(each).inputs[each.input].gradient);
    const arrives = each => nameEl(lineOf(each).result.gradient);
    const row = formula => [gradient(place), " = ", typesetFormula(place, formula)];
    if (formulas.length === 1 && canTypeset(place))
        return [el("span", {}, row(formulaOfRule(formulas[0]))), el("small", {}, "in place of ", row(place.formula))];
    return [el("span", {}, found.map((each, n) => [n ? ", " : "", gradient(each), " = ", code(formulaOfRule(formulas[n]))])),
        el("small", {}, "in place of ", code(typeset(right)), "; dy is the gradient that arrives: ", listed(found.map(arrives)))];
}

/* ---- the strip: which state is shown, if it is not the recorded one ------------------------------------------------ */

/* " dQ and dK are wrong.": the gradients of leaves that wrong numbers have reached, as links to their steps. */
function spoiledLeaves({ steps, tape }) {
    const spoiled = learningLeaves(tape).filter(t => Controls.changedByRule(t));
    const links = spoiled.map(t => el("a", { href: addressOf(steps[t.gradStep], null) }, nameEl(t.gradient)));
    return links.length > 0 && [" ", listed(links), links.length > 1 ? " are wrong." : " is wrong."];
}

/* What the rules are that the reader has put in the place of the right ones. */
function wordsOfRules() {
    const { rules = [], rule, planted = [] } = state.lesson, byKey = rules.filter(({ key }) => key === rule);
    const others = planted.filter(each => each.typed && (isWrong(each) || !isBroken(state.lesson)));
    const gradientOf = ({ line, input }) => state.lesson.tape.lines.find(each => each.line === line).inputs[input].gradient;
    const words = each => menuRuleOf(state.lesson, each)?.title || `your rule of ${plain(gradientOf(each))}`;
    return [...new Set([...byKey.map(({ title }) => title), ...others.map(words)])].join(", ");
}

function drawState() {
    const isOff = isBroken(state.lesson), isChanged = Controls.isChanged(),
        words = hasRules(state.lesson) && wordsOfRules();
    const checks = isOff ? state.lesson.steps.filter(step => step.check === "wrong") : [];
    const isTry = isExercise() && Controls.onlyRules(); /* which the box judges */
    const isAtSgd = Controls.onlySgd() && isSgd(stepNow()); /* which says it */
    byId("state").hidden = Controls.isLoading() || (!isChanged && !isOff) || isTry || (isAtSgd && !isOff);
    byId("state").classList.toggle("broken", isOff);
    fill(byId("state"), isOff ? el("span", {}, el("b", {}, "Broken: "), words, ". ",
        checks.length > 0 && el("a", { href: addressOf(checks[0], null) },
        `${checks.length} red ${checks.length === 1 ? "check" : "checks"}`), checks.length > 0 && ".", spoiledLeaves(state.lesson))
            : words ? el("span", {}, `Planted: ${words}. It is right.`)
            : el("span", {}, `${Controls.onlySgd() ? `After ${countOfSteps(stepsTaken(state.lesson))} of SGD` : "Changed"}: the loss is ${bare(lossOf(state.lesson))}, it was ${bare(lossOf(Controls.recorded()))}.`),
    Controls.otherState() && !isExercise() && el("button", { "aria-pressed": String(state.compare),
        onclick: () => Controls.setCompare(!state.compare) }, "side by side"),
    isChanged && el("button", { onclick: () => Controls.startAgain() }, "undo"));
    byId("b-break").classList.toggle("used", isOff);
    byId("b-change").classList.toggle("used", isChanged);
}
